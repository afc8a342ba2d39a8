//! Advice about scripts in the arguments of a command: `sh -c "… ${vars.x} …"` makes code of a value.

use super::{File, Findings};
use crate::config::document::tree::Node;
use steadfast_resources::{FieldMode, KindSpec};

/// The programs that read code from an argument, each with the letters of the options before it.
const INTERPRETERS: &[(&str, &[char])] = &[
    ("sh", &['c']),
    ("bash", &['c']),
    ("dash", &['c']),
    ("ash", &['c']),
    ("zsh", &['c']),
    ("ksh", &['c']),
    ("fish", &['c']),
    ("python", &['c']),
    ("perl", &['e', 'E']),
    ("ruby", &['e']),
    ("node", &['e', 'p']),
    ("php", &['r']),
];

/// Adds the advice about the commands of a resource.
pub(super) fn advise(
    file: &File,
    (spec, item, identity): (&KindSpec, usize, &str),
    findings: &mut Findings,
) {
    for (key, value) in file.tree.entries(item) {
        let name = file.text_of(*key).unwrap_or_default();
        let field = spec.fields.iter().find(|field| field.name == name);
        let is_command = field.is_some_and(|field| match field.mode {
            Some(FieldMode::Argv(shell)) => {
                shell.is_empty() || file.tree.entry(item, shell).is_none()
            }
            _ => false,
        });
        if !is_command {
            continue;
        }
        // The program of `args` may stand in `cmd`.
        let program = file.tree.entry(item, "cmd").filter(|_| name == "args");
        let program = program.and_then(|(_, program)| file.text_of(program));
        let mut words: Vec<&str> = program.into_iter().collect();
        let mut is_text = false;
        match file.tree.node(*value) {
            Some(Node::List(items)) => {
                words.extend(items.iter().map(|item| file.text_of(*item).unwrap_or_default()));
            }
            _ => is_text = true,
        }
        if is_text {
            words.extend(file.text_of(*value).unwrap_or_default().split_whitespace());
        }
        if let Some(interpreter) = script_with_expression(&words, is_text) {
            let what = format!(
                "{identity}: an expression in the script of `{interpreter}` becomes code, not text"
            );
            let hint = hint_for(interpreter);
            findings.add("expression-in-script", (file, *key, item), what, hint);
        }
    }
}

fn hint_for(interpreter: &str) -> String {
    let argument = match interpreter {
        "perl" | "ruby" => "ARGV[0]",
        "node" | "php" => "argv[1]",
        _ if interpreter.starts_with("python") => "sys.argv[1]",
        _ => "\"$1\"",
    };
    format!("pass the value as a further argument ({argument}), or by `env:`")
}

/// Returns the interpreter whose script has an expression. In a command that is one text, all words behind the option
/// are meant as the script.
fn script_with_expression<'w>(words: &[&'w str], is_text: bool) -> Option<&'w str> {
    let mut rest = words.iter().enumerate();
    rest.find_map(|(at, word)| {
        let program = word.rsplit('/').next().unwrap_or(word);
        // Versions such as python3.11 are the same program.
        let bare =
            program.trim_end_matches(|letter: char| letter.is_ascii_digit() || letter == '.');
        let (_, letters) = INTERPRETERS.iter().find(|(name, _)| *name == bare)?;
        let mut behind = words.get(at + 1..).unwrap_or_default().iter();
        let is_code = |option: &&str| {
            option.starts_with('-') && !option.starts_with("--") && option.contains(*letters)
        };
        behind.find(|option| is_code(option))?;
        let most = if is_text { usize::MAX } else { 1 };
        behind.take(most).any(|word| has_expression(word)).then_some(program)
    })
}

/// Returns true if a text has `${` that is not written as `$${`.
fn has_expression(text: &str) -> bool {
    text.replace("$${", "").contains("${")
}
