//! The messages about a token that an expression does not have at its place.

use crate::expressions::error::{Cause, ExpressionError};
use crate::expressions::functions::table::function_named;
use crate::expressions::syntax::advice::FOREIGN_FUNCTIONS;
use crate::expressions::syntax::parse::{Parser, shortened};
use crate::expressions::syntax::tokens::{Token, TokenKind};

impl Parser {
    /// Returns the word before a token.
    fn word_before(&self, at: usize) -> Option<&str> {
        match &self.tokens.get(at.checked_sub(1)?)?.kind {
            TokenKind::Word(word) => Some(word),
            _ => None,
        }
    }

    /// Returns the dotted name that ends before a token.
    fn name_before(&self, at: usize) -> Vec<&str> {
        let mut name = Vec::new();
        let mut at = at;
        while let Some(word) = self.word_before(at) {
            name.insert(0, word);
            at -= 1;
            let is_dot =
                at > 0 && self.tokens.get(at - 1).is_some_and(|it| it.kind == TokenKind::Sign("."));
            if !is_dot {
                break;
            }
            at -= 1;
        }
        name
    }

    /// Returns the problem of a test such as `x is defined`, which only templates have.
    fn refused_test(&self, range: (usize, usize)) -> ExpressionError {
        let mut words = self.tokens.iter().skip(self.at + 1).map(|token| &token.kind);
        let is_not = |kind: &&TokenKind| matches!(kind, TokenKind::Word(word) if word == "not");
        let test = words.find(|kind| !is_not(kind));
        let error = |message: &str| ExpressionError::new(Cause::Syntax, range, message);
        let name = self.name_before(self.at);
        let Some(TokenKind::Word(test)) = test else {
            return error("`is` is no operator; write `==`");
        };
        if !matches!(test.as_str(), "defined" | "undefined") {
            let foreign = FOREIGN_FUNCTIONS.iter().find(|(foreign, _)| foreign == test);
            let own = format!("{{}} | {test}(…)");
            let here = foreign.map(|(_, here)| *here);
            let here = here.or_else(|| function_named(test).is_some().then_some(own.as_str()));
            let Some(here) = here else { return error("`is` is no operator; write `==`") };
            let value = if name.is_empty() { "x".to_owned() } else { shortened(&name.join(".")) };
            // The pattern of the user replaces the one of the example.
            let pattern = match (words.next(), words.next()) {
                (Some(TokenKind::Sign("(")), Some(TokenKind::Text(found))) => {
                    Some(shortened(found))
                }
                _ => None,
            };
            let here = here.replace("{}", &value);
            let here =
                pattern.map_or_else(|| here.clone(), |found| here.replace("pattern", &found));
            return error(&format!("`is {}` is no test", shortened(test)))
                .hint(format!("write `{here}`; `not` stands before the value"));
        }
        match name.split_last() {
            Some((key, map)) if !map.is_empty() => {
                let map = shortened(&map.join("."));
                error("only templates have `is defined`").hint(format!(
                    "write `\"{0}\" in {map}`, or `{map}.{0} | default(VALUE)`",
                    shortened(key)
                ))
            }
            _ => error("only templates have `is defined`")
                .hint("write `\"key\" in MAP`, or `NAME | default(VALUE)`"),
        }
    }

    /// Returns the problem of a call such as `x.contains("a")`.
    fn refused_method(&self, range: (usize, usize)) -> ExpressionError {
        let name = self.name_before(self.at);
        let error = |message: &str| ExpressionError::new(Cause::Syntax, range, message);
        let Some((method, value)) = name.split_last().filter(|(_, value)| !value.is_empty()) else {
            return error("expected an operator or the end, found `(`");
        };
        let (method, value) = (shortened(method), shortened(&value.join(".")));
        let hint = match FOREIGN_FUNCTIONS.iter().find(|(foreign, _)| *foreign == method) {
            Some((_, here)) => here.replace("{}", &value),
            None => format!("{value} | {method}(…)"),
        };
        error("a value has no methods").hint(format!("write `{hint}`"))
    }

    pub(super) fn unexpected(&self, token: Option<&Token>, wanted: &str) -> ExpressionError {
        let Some(token) = token else {
            let message = format!("expected {wanted}, found the end of the expression");
            return ExpressionError::new(Cause::Syntax, (self.length, self.length), message);
        };
        let range = (token.start, token.end);
        let found = match &token.kind {
            TokenKind::Word(word) if word == "is" => return self.refused_test(range),
            TokenKind::Sign("(") if self.word_before(self.at).is_some() => {
                return self.refused_method(range);
            }
            TokenKind::Word(word) => shortened(word),
            TokenKind::Int(number) => number.to_string(),
            TokenKind::Float(number) => number.to_string(),
            TokenKind::Text(text) => format!("\"{}\"", shortened(text)),
            TokenKind::Sign(sign) => (*sign).to_owned(),
        };
        ExpressionError::new(Cause::Syntax, range, format!("expected {wanted}, found `{found}`"))
    }
}
