//! The parser: a strict subset of the expressions of Jinja.

use crate::expressions::error::{Cause, ExpressionError};
use crate::expressions::functions::table::{Function, function_named};
use crate::expressions::syntax::advice::hint_for_function;
use crate::expressions::syntax::node::{Node, NodeKind, Operator};
use crate::expressions::syntax::tokens::{Token, TokenKind, split_tokens};

/// The maximum length of an expression in bytes.
const LONGEST: usize = 8 * 1024;

/// The maximum number of levels of an expression.
const DEEPEST: usize = 60;

/// Words that name no value.
pub(in crate::expressions) const RESERVED: &[&str] =
    &["and", "or", "not", "in", "if", "else", "is"];

/// Parses a whole expression.
pub(in crate::expressions) fn parse_expression(text: &str) -> Result<Node, ExpressionError> {
    if text.len() > LONGEST {
        let message = format!("an expression has at most {LONGEST} bytes, this has {}", text.len());
        return Err(ExpressionError::new(Cause::Syntax, (0, 0), message)
            .hint("split it into several variables"));
    }
    let tokens = split_tokens(text)?;
    if tokens.is_empty() {
        return Err(ExpressionError::new(
            Cause::Syntax,
            (0, text.len()),
            "the expression is empty",
        )
        .hint("write a name such as `vars.x`; the text `${` is written as `$${`"));
    }
    let mut parser = Parser { tokens, at: 0, level: 0, length: text.len() };
    let node = parser.read_choice()?;
    match parser.tokens.get(parser.at) {
        None => Ok(node),
        Some(token) => Err(parser.unexpected(Some(token), "an operator or the end")),
    }
}

pub(super) struct Parser {
    pub(super) tokens: Vec<Token>,
    pub(super) at: usize,
    level: usize,
    /// The length of the text.
    pub(super) length: usize,
}

type Parsed = Result<Node, ExpressionError>;

impl Parser {
    /// Reads `x if c else y`, or less.
    fn read_choice(&mut self) -> Parsed {
        self.level += 1;
        if self.level > DEEPEST / 2 {
            return Err(self.too_deep());
        }
        let mut value = self.read_or()?;
        if self.take_word("if") {
            let condition = self.read_or()?;
            if !self.take_word("else") {
                let found = self.tokens.get(self.at);
                return Err(self.unexpected(found, "`else`").hint("write `x if condition else y`"));
            }
            let other = self.read_choice()?;
            let (start, end) = (value.start, other.end);
            let parts = (Box::new(value), Box::new(condition), Box::new(other));
            value = self.join(NodeKind::If(parts.0, parts.1, parts.2), start, end)?;
        }
        self.level -= 1;
        Ok(value)
    }

    fn read_or(&mut self) -> Parsed {
        let mut left = self.read_and()?;
        while self.take_word("or") {
            let right = self.read_and()?;
            left = self.binary(Operator::Or, left, right)?;
        }
        Ok(left)
    }

    fn read_and(&mut self) -> Parsed {
        let mut left = self.read_not()?;
        while self.take_word("and") {
            let right = self.read_not()?;
            left = self.binary(Operator::And, left, right)?;
        }
        Ok(left)
    }

    fn read_not(&mut self) -> Parsed {
        let start = self.tokens.get(self.at).map_or(self.length, |token| token.start);
        let mut count = 0;
        while self.take_word("not") {
            count += 1;
        }
        let mut node = self.read_comparison()?;
        for _ in 0..count {
            let end = node.end;
            node = self.join(NodeKind::Not(Box::new(node)), start, end)?;
        }
        Ok(node)
    }

    fn read_comparison(&mut self) -> Parsed {
        let left = self.read_sum()?;
        let Some(operator) = self.take_comparison()? else { return Ok(left) };
        let right = self.read_sum()?;
        let node = self.binary(operator, left, right)?;
        let before = self.at;
        if self.take_comparison()?.is_some() {
            let range = self.tokens.get(before).map_or((0, 0), |token| (token.start, token.end));
            return Err(ExpressionError::new(
                Cause::Syntax,
                range,
                "comparisons cannot be chained; write `a < b and b < c`",
            ));
        }
        Ok(node)
    }

    fn take_comparison(&mut self) -> Result<Option<Operator>, ExpressionError> {
        let signs = [
            Operator::Equal,
            Operator::NotEqual,
            Operator::LessEqual,
            Operator::GreaterEqual,
            Operator::Less,
            Operator::Greater,
        ];
        if let Some(operator) = self.take_operator(&signs) {
            return Ok(Some(operator));
        }
        if self.take_word("in") {
            return Ok(Some(Operator::In));
        }
        if self.take_word("not") {
            if self.take_word("in") {
                return Ok(Some(Operator::NotIn));
            }
            return Err(self.unexpected(self.tokens.get(self.at), "`in` after `not`"));
        }
        Ok(None)
    }

    /// Reads sums, then concatenations, which bind stronger, as in Jinja.
    fn read_sum(&mut self) -> Parsed {
        let mut left = self.read_concat()?;
        while let Some(operator) = self.take_operator(&[Operator::Add, Operator::Subtract]) {
            let right = self.read_concat()?;
            left = self.binary(operator, left, right)?;
        }
        Ok(left)
    }

    fn read_concat(&mut self) -> Parsed {
        let mut left = self.read_product()?;
        while let Some(operator) = self.take_operator(&[Operator::Concat]) {
            let right = self.read_product()?;
            left = self.binary(operator, left, right)?;
        }
        Ok(left)
    }

    fn read_product(&mut self) -> Parsed {
        let signs =
            [Operator::Multiply, Operator::Divide, Operator::FloorDivide, Operator::Remainder];
        let mut left = self.read_filtered()?;
        while let Some(operator) = self.take_operator(&signs) {
            let right = self.read_filtered()?;
            left = self.binary(operator, left, right)?;
        }
        Ok(left)
    }

    /// Reads a value with its filters. A minus binds stronger than a filter, as in Jinja.
    fn read_filtered(&mut self) -> Parsed {
        let mut node = self.read_signed()?;
        while self.take_sign("|") {
            let Some(Token { kind: TokenKind::Word(name), start, end }) = self.tokens.get(self.at)
            else {
                return Err(self.unexpected(self.tokens.get(self.at), "the name of a filter"));
            };
            let (name, start, mut end) = (name.clone(), *start, *end);
            self.at += 1;
            let mut arguments = vec![node];
            if self.take_sign("(") {
                end = self.read_list(")", &mut arguments)?;
            }
            let first = arguments.first().map_or(start, |node| node.start);
            node = self.call(&name, (start, end), arguments)?;
            node.start = first;
        }
        Ok(node)
    }

    fn read_signed(&mut self) -> Parsed {
        let start = self.tokens.get(self.at).map_or(self.length, |token| token.start);
        let mut count = 0;
        while self.take_sign("-") {
            count += 1;
        }
        let mut node = self.read_postfix()?;
        for _ in 0..count {
            let end = node.end;
            node = self.join(NodeKind::Negate(Box::new(node)), start, end)?;
        }
        Ok(node)
    }

    /// Reads a value with its keys and indexes.
    fn read_postfix(&mut self) -> Parsed {
        let mut node = self.read_value()?;
        loop {
            if self.take_sign(".") {
                let Some(Token { kind: TokenKind::Word(key), end, .. }) = self.tokens.get(self.at)
                else {
                    let found = self.tokens.get(self.at);
                    return Err(self.unexpected(found, "a key after `.`").hint(
                        "a key is a name; another key is written in brackets: `vars[\"my-key\"]`",
                    ));
                };
                let (key, end) = (key.clone(), *end);
                self.at += 1;
                node = self.key_of(node, key, end)?;
            } else if self.take_sign("[") {
                let index = self.read_choice()?;
                let end = self.expect_sign("]")?;
                let start = node.start;
                node = match index.kind {
                    NodeKind::Text(key) => self.key_of(node, key, end)?,
                    _ => self.join(NodeKind::Index(Box::new(node), Box::new(index)), start, end)?,
                };
            } else {
                return Ok(node);
            }
        }
    }

    fn read_value(&mut self) -> Parsed {
        let Some(Token { kind, start, end }) = self.tokens.get(self.at).cloned() else {
            return Err(self.unexpected(None, "a value"));
        };
        self.at += 1;
        let kind = match kind {
            TokenKind::Int(number) => NodeKind::Int(number),
            TokenKind::Float(number) => NodeKind::Float(number),
            TokenKind::Text(text) => NodeKind::Text(text),
            TokenKind::Sign("(") => {
                let mut node = self.read_choice()?;
                node.end = self.expect_sign(")")?;
                node.start = start;
                return Ok(node);
            }
            TokenKind::Sign("[") => {
                let mut items = Vec::new();
                let end = self.read_list("]", &mut items)?;
                return self.join(NodeKind::List(items), start, end);
            }
            TokenKind::Word(word) => return self.read_word(&word, start, end),
            TokenKind::Sign(_) => {
                self.at -= 1;
                return Err(self.unexpected(self.tokens.get(self.at), "a value"));
            }
        };
        Ok(Node::new(kind, start, end))
    }

    fn read_word(&mut self, word: &str, start: usize, end: usize) -> Parsed {
        let wrong = |message: String| ExpressionError::new(Cause::Syntax, (start, end), message);
        match word {
            "true" => return Ok(Node::new(NodeKind::Bool(true), start, end)),
            "false" => return Ok(Node::new(NodeKind::Bool(false), start, end)),
            "True" | "False" => {
                return Err(wrong(format!(
                    "`{word}` is no value; write `{}`",
                    word.to_lowercase()
                )));
            }
            "yes" | "on" | "Yes" | "On" => {
                return Err(wrong(format!("`{word}` is no value; write `true`")));
            }
            "no" | "off" | "No" | "Off" => {
                return Err(wrong(format!("`{word}` is no value; write `false`")));
            }
            "none" | "None" | "null" => {
                return Err(wrong(format!("the language has no `{word}`"))
                    .hint("a value that may be absent has `| default(…)`"));
            }
            _ if RESERVED.contains(&word) => {
                self.at -= 1;
                return Err(self.unexpected(self.tokens.get(self.at), "a value"));
            }
            _ => {}
        }
        if self.take_sign("(") {
            let mut arguments = Vec::new();
            let end = self.read_list(")", &mut arguments)?;
            let mut node = self.call(word, (start, end), arguments)?;
            node.start = start;
            return Ok(node);
        }
        Ok(Node::new(NodeKind::Path(vec![word.to_owned()]), start, end))
    }

    /// Reads values up to the closing sign, whose end it returns.
    fn read_list(
        &mut self,
        close: &'static str,
        items: &mut Vec<Node>,
    ) -> Result<usize, ExpressionError> {
        loop {
            if let Some(end) = self.take_end_of(close) {
                return Ok(end);
            }
            items.push(self.read_choice()?);
            if !self.take_sign(",") {
                return self.expect_sign(close);
            }
        }
    }

    fn call(&self, name: &str, range: (usize, usize), arguments: Vec<Node>) -> Parsed {
        let wrong = |message: String| ExpressionError::new(Cause::Name, range, message);
        let Some(function) = function_named(name) else {
            let what = format!("no function `{}`", shortened(name));
            return Err(wrong(what).hint(hint_for_function(name, &arguments)));
        };
        let count = arguments.len();
        if count < function.least || count > function.most {
            let message =
                format!("`{name}` wants {}, found {count} values", wanted_arguments(function));
            return Err(wrong(message).hint(format!("write {}", function.usage)));
        }
        let start = arguments.first().map_or(range.0, |node| node.start.min(range.0));
        if name == "default" {
            let mut arguments = arguments.into_iter();
            if let (Some(value), Some(other)) = (arguments.next(), arguments.next()) {
                let kind = NodeKind::Default(Box::new(value), Box::new(other));
                return self.join(kind, start, range.1);
            }
            return Err(wrong("`default` wants a value and its replacement".to_owned()));
        }
        self.join(NodeKind::Call(function, arguments), start, range.1)
    }

    fn key_of(&self, node: Node, key: String, end: usize) -> Parsed {
        let start = node.start;
        match node.kind {
            NodeKind::Path(mut path) => {
                path.push(key);
                Ok(Node::new(NodeKind::Path(path), start, end))
            }
            _ => self.join(NodeKind::Key(Box::new(node), key), start, end),
        }
    }

    fn binary(&self, operator: Operator, left: Node, right: Node) -> Parsed {
        let (start, end) = (left.start, right.end);
        let is_chain = matches!(left.kind, NodeKind::Binary(of, ..) if of == operator);
        let kind = NodeKind::Binary(operator, Box::new(left), Box::new(right));
        let joined = self.join(kind, start, end);
        let sign = operator.sign();
        joined.map_err(|error| match operator {
            Operator::Concat if is_chain => {
                error.hint("join a list: `[vars.a, vars.b] | join(\"\")`")
            }
            _ if is_chain => error.hint(format!(
                "a chain of `{sign}` has fewer than {DEEPEST} parts: split it into several variables"
            )),
            _ => error,
        })
    }

    /// Creates a node of several parts, unless it would be too deep.
    fn join(&self, kind: NodeKind, start: usize, end: usize) -> Parsed {
        let node = Node::new(kind, start, end);
        if node.depth > DEEPEST { Err(self.too_deep()) } else { Ok(node) }
    }

    fn too_deep(&self) -> ExpressionError {
        let message = format!("the expression is nested deeper than {DEEPEST} levels");
        ExpressionError::new(Cause::Syntax, (0, self.length), message)
            .hint("split it into several variables")
    }

    fn take_word(&mut self, word: &str) -> bool {
        let found = self
            .tokens
            .get(self.at)
            .is_some_and(|token| matches!(&token.kind, TokenKind::Word(found) if found == word));
        self.at += usize::from(found);
        found
    }

    fn take_sign(&mut self, sign: &str) -> bool {
        self.take_end_of(sign).is_some()
    }

    /// Takes a sign and returns its end.
    fn take_end_of(&mut self, sign: &str) -> Option<usize> {
        let token = self.tokens.get(self.at)?;
        let end =
            matches!(token.kind, TokenKind::Sign(found) if found == sign).then_some(token.end);
        self.at += usize::from(end.is_some());
        end
    }

    fn take_operator(&mut self, operators: &[Operator]) -> Option<Operator> {
        operators.iter().copied().find(|operator| self.take_sign(operator.sign()))
    }

    /// Takes a sign and returns its end, or fails.
    fn expect_sign(&mut self, sign: &'static str) -> Result<usize, ExpressionError> {
        let end = self.take_end_of(sign);
        end.ok_or_else(|| self.unexpected(self.tokens.get(self.at), &format!("`{sign}`")))
    }
}

/// Returns a text of the user for a message.
pub(in crate::expressions) fn shortened(text: &str) -> String {
    let clean: String = text.chars().take(41).flat_map(char::escape_debug).collect();
    if text.chars().count() <= 40 { clean } else { format!("{clean}…") }
}

/// Returns the wanted number of values in words.
fn wanted_arguments(function: &Function) -> String {
    match (function.least, function.most) {
        (least, most) if least == most && least == 1 => "one value".to_owned(),
        (least, most) if least == most => format!("{least} values"),
        (least, usize::MAX) => format!("at least {least} values"),
        (least, most) => format!("{least} to {most} values"),
    }
}
