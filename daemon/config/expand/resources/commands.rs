//! Commands without a shell: the text is split into words first, so that one expression stays within one argument.

use crate::config::document::tree::{Node, Tree};
use crate::config::expand::outcome::{AllOutcomes, Outcome};
use crate::config::expand::resources::fields::Target;
use crate::config::expand::text::{Part, append_text, expression_end, split_scalar};
use crate::config::expand::written::Written;
use crate::config::expand::{Context, Expander, copy_nodes};
use crate::config::problem::code::Code;
use crate::config::problem::{Problem, quoted};
use crate::expressions::Value;
use steadfast_resources::{FieldRole, FieldSpec, FieldType, KindSpec};

/// The greatest number of words of a command with expressions.
const MOST_WORDS: usize = 100_000;

impl Expander<'_> {
    /// Expands a command. A text with expressions becomes `cmd` with its first word, and `args` with the others.
    pub(in crate::config::expand) fn expand_command(
        &mut self,
        context: &Context,
        (key, field, value): (usize, &'static FieldSpec, usize),
        into: &mut Tree<'static>,
        target: &mut Target,
    ) -> Option<()> {
        let text = context.text_of(value).filter(|text| text.contains("${")).map(str::to_owned);
        let list = text.as_ref().and_then(|_| self.evaluate_list(context, (value, field)));
        let is_list = match list {
            Some(Outcome::Failed) => return None,
            Some(Outcome::Known(found)) => matches!(found, Value::List(_)),
            Some(Outcome::Unknown(_)) => true,
            None => false,
        };
        let Some(text) = text.filter(|_| !is_list) else {
            let expanded = self.expand_value(context, (value, field), into);
            return Self::add_expanded(context, (key, field, expanded), into, target);
        };
        let written = split_words(&text);
        self.doubt_operators(context, (value, field.name), &written);
        if written.len() > MOST_WORDS {
            let name = field.name;
            let what = format!("`{name}` has {} words, more than {MOST_WORDS}", written.len());
            let hint = "write the values to a file, and name it in the command";
            self.report(context, value, Problem::new(Code::Expression, what).hint(hint));
            return None;
        }
        let words = match self.expand_words(context, value, &written) {
            Outcome::Known(words) => words,
            Outcome::Unknown(until) => {
                target.wait_for(until, field.name);
                return Some(());
            }
            Outcome::Failed => return None,
        };
        if words.first().is_none_or(|word| word.trim().is_empty()) {
            let what = format!("the command of `{}` would be empty", field.name);
            self.report(context, value, Problem::new(Code::Expression, what));
            return None;
        }
        let span = context.tree().span(value);
        if field.takes == FieldType::Texts {
            let words = words.into_iter().map(|word| into.push_text(word, false, span)).collect();
            let node = into.push(Node::List(words), span);
            return Self::add_expanded(context, (key, field, Outcome::Known(node)), into, target);
        }
        let arguments = match field.role {
            Some(FieldRole::Command { arguments }) => Some(arguments),
            _ => None,
        };
        let spaced =
            words.iter().find(|word| word.is_empty() || word.contains(char::is_whitespace));
        if let (Some(word), None) = (spaced, arguments) {
            let what = format!("one argument of `{}` would be {:?}", field.name, quoted(word));
            let hint =
                "this command is split at white space: give it a shell, and pass the value by env";
            self.report(context, value, Problem::new(Code::Expression, what).hint(hint));
            return None;
        }
        let Some(arguments) = arguments else {
            let node = into.push_text(words.join(" "), false, span);
            return Self::add_expanded(context, (key, field, Outcome::Known(node)), into, target);
        };
        if context.tree().entry(target.item, arguments).is_some() {
            let name = field.name;
            let what = format!("`{name}` with expressions and `{arguments}` exclude each other");
            let hint =
                format!("put the program into `{name}`, and all arguments into `{arguments}`");
            self.report(context, value, Problem::new(Code::Expression, what).hint(hint));
            return None;
        }
        let mut words = words.into_iter();
        let program = words.next().unwrap_or_default();
        let node = into.push_text(program, false, span);
        Self::add_expanded(context, (key, field, Outcome::Known(node)), into, target)?;
        let args: Vec<usize> = words.map(|word| into.push_text(word, false, span)).collect();
        if !args.is_empty() {
            let key = into.push_text(arguments.to_owned(), true, span);
            let list = into.push(Node::List(args), span);
            target.pairs.push((key, list));
        }
        Some(())
    }

    /// Expands all words of a command, so that the problems of all are reported.
    fn expand_words(
        &mut self,
        context: &Context,
        value: usize,
        written: &[String],
    ) -> Outcome<Vec<String>> {
        let mut from = 0;
        let mut all = AllOutcomes::default();
        for word in written {
            all.add(self.expand_word(context, (value, &mut from), word));
        }
        all.finish()
    }

    /// Warns about operators of a shell in a command without one.
    fn doubt_operators(
        &mut self,
        context: &Context,
        (node, name): (usize, &str),
        words: &[String],
    ) {
        let operators = ["|", "||", "&&", "&", ";", ">", ">>", "<", "2>&1"];
        if let Some(word) = words.iter().find(|word| operators.contains(&word.as_str())) {
            let what = format!("`{name}` is not run by a shell: `{word}` is passed literally");
            let hint = "set the shell that runs the text, and pass values by `env`";
            self.report(context, node, Problem::new(Code::Doubt, what).warning().hint(hint));
        }
    }

    /// Evaluates a text that is one expression, for a field of several words: a list gives the words. `None` for
    /// another text.
    fn evaluate_list(
        &mut self,
        context: &Context,
        (node, field): (usize, &FieldSpec),
    ) -> Option<Outcome<Value>> {
        let text = context.text_of(node).filter(|_| field.takes == FieldType::Texts)?;
        let is_one =
            text.starts_with("${") && text.ends_with('}') && text.matches("${").count() == 1;
        is_one.then(|| self.evaluate_scalar(context, node))
    }

    fn add_expanded(
        context: &Context,
        (key, field, expanded): (usize, &FieldSpec, Outcome<usize>),
        into: &mut Tree<'static>,
        target: &mut Target,
    ) -> Option<()> {
        match expanded {
            Outcome::Known(node) => {
                target.pairs.push((copy_nodes(context.tree(), key, into), node));
            }
            Outcome::Unknown(until) => target.wait_for(until, field.name),
            Outcome::Failed => return None,
        }
        Some(())
    }

    /// Reports a value that cannot be a part of an argument.
    fn no_argument(&mut self, context: &Context, node: usize, value: &Value) -> Outcome<String> {
        let kind = crate::config::expand::values::kind_of(value);
        let what = format!("an argument wants a string, the expression is {kind}");
        self.report(context, node, Problem::new(Code::Expression, what));
        Outcome::Failed
    }

    /// Reports a resource whose command would come from an expression: without the fields of the command its name is
    /// the command, and a shell may read it (S-18).
    pub(in crate::config::expand) fn refuse_command_name(
        &mut self,
        context: &Context,
        (spec, item): (&KindSpec, usize),
    ) -> Option<()> {
        let Some((command, arguments)) = spec.command_fields() else { return Some(()) };
        if has_command(context, item, (command, arguments)) {
            return Some(());
        }
        let kind = spec.kind;
        let tree = context.tree();
        let name = if tree.scalar(item).is_some() {
            Some(item)
        } else {
            tree.entry(item, "name").map(|(_, name)| name)
        };
        let text = name.and_then(|name| context.text_of(name));
        let parts = text.filter(|text| text.contains("${")).and_then(split_scalar);
        let is_made =
            parts.is_some_and(|parts| parts.iter().any(|part| matches!(part, Part::Expression(_))));
        let what = match name {
            Some(_) if is_made => {
                "a command that is taken from `name` has no expressions".to_owned()
            }
            None if context.scope.item.is_some() => format!(
                "the item would be the command: {kind} in a loop needs `{command}` or `{arguments}`"
            ),
            _ => return Some(()),
        };
        let hint = format!(
            "write {arguments}: [/bin/echo, \"${{…}}\"]; or a shell, {command}: TEXT, and env: {{NAME: \"${{…}}\"}}"
        );
        self.report(context, name.unwrap_or(item), Problem::new(Code::Expression, what).hint(hint));
        None
    }

    /// Evaluates one word of a command. `from` is the offset in the scalar behind the expressions before it.
    fn expand_word(
        &mut self,
        context: &Context,
        (node, from): (usize, &mut usize),
        word: &str,
    ) -> Outcome<String> {
        let Some(parts) = split_scalar(word) else {
            let what = "`${` without `}`";
            let hint = "close the expression: ${…}; for a literal ${ write $${";
            self.report(context, node, Problem::new(Code::Expression, what).hint(hint));
            return Outcome::Failed;
        };
        let mut joined = String::new();
        for part in parts {
            let text = match part {
                Part::Literal(text) => {
                    joined.push_str(&text);
                    continue;
                }
                Part::Expression(text) => text,
            };
            let written =
                Written::find_next(context, &text, (context.tree().span(node), &mut *from));
            match self.evaluate(context, written) {
                Outcome::Known(value) => match value.embedded_text() {
                    Some(text) if append_text(&mut joined, &text) => {}
                    Some(_) => return self.too_long(context, node),
                    None => return self.no_argument(context, node, &value),
                },
                Outcome::Unknown(until) => return Outcome::Unknown(until),
                Outcome::Failed => return Outcome::Failed,
            }
        }
        Outcome::Known(joined)
    }
}

/// Returns true if a resource has a command of its own, written or received.
fn has_command(context: &Context, item: usize, (command, arguments): (&str, &str)) -> bool {
    let tree = context.tree();
    let is_argument = |key: &str| {
        key.strip_prefix(arguments).is_some_and(|it| it.is_empty() || it.starts_with('.'))
    };
    let is_command = |key: &str| key == command || is_argument(key);
    let is_filled = |value: usize| match tree.node(value) {
        Some(Node::Scalar(scalar)) => !scalar.is_null() && !scalar.text.trim().is_empty(),
        Some(Node::List(items)) => !items.is_empty(),
        _ => true,
    };
    let has_key = |node: usize| {
        let mut keys = tree.entries(node).iter();
        keys.any(|(key, value)| context.text_of(*key).is_some_and(is_command) && is_filled(*value))
    };
    has_key(item) || tree.entry(item, "recv").is_some_and(|(_, received)| has_key(received))
}

/// Splits a command at white space outside of expressions.
fn split_words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut rest = text;
    // After an expression without an end, all others are within it.
    let mut has_end = true;
    while let Some(letter) = rest.chars().next() {
        if let Some(inner) = rest.strip_prefix("${").filter(|_| has_end) {
            if let Some(end) = expression_end(inner) {
                let length = end + 3;
                word.push_str(rest.get(..length).unwrap_or(rest));
                rest = rest.get(length..).unwrap_or_default();
                continue;
            }
            has_end = false;
        }
        if rest.starts_with("$${") {
            word.push_str("$${");
            rest = rest.get(3..).unwrap_or_default();
            continue;
        }
        if letter.is_whitespace() {
            if !word.is_empty() {
                words.push(std::mem::take(&mut word));
            }
        } else {
            word.push(letter);
        }
        rest = rest.get(letter.len_utf8()..).unwrap_or_default();
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::split_words;

    #[test]
    fn an_expression_stays_within_one_word() {
        assert_eq!(split_words("a ${b + \" \"}c  d"), ["a", "${b + \" \"}c", "d"]);
        assert_eq!(split_words("$${a b}"), ["$${a", "b}"]);
    }
}
