//! Argument vectors: parsing from text, and quoting for display.

use crate::parts::shell_words::{is_plain, shell_word};
use crate::secrets::escape::short;
use std::path::Path;

/// Returns the argument vector of a text: a call of the shell if one is declared, else the words between
/// white space, unchanged.
pub(super) fn vector(text: &str, shell: Option<&str>) -> Vec<String> {
    match shell {
        Some(shell) => vec![shell.to_owned(), "-c".to_owned(), text.to_owned()],
        None => text.split_whitespace().map(str::to_owned).collect(),
    }
}

/// Returns the first word that has a meaning only to a shell (a quote, a redirection, a variable, a pattern),
/// in a text without a shell.
pub(super) fn meant_for_a_shell(text: &str) -> Option<&str> {
    const OPERATORS: [&str; 5] = ["|", "||", "&&", "&", ";"];
    text.split_whitespace().find(|word| {
        let redirects = word.trim_start_matches(|c: char| c.is_ascii_digit() || c == '&');
        OPERATORS.contains(word)
            || redirects.starts_with(['>', '<'])
            || word.starts_with(['"', '\''])
            || word.contains(['$', '`'])
            || (word.starts_with('/') && word.contains('*'))
    })
}

/// Returns the script of a shell call, or the first word of its command text, if that is a plain path.
pub(super) fn read_by_a_shell(argv: &[String]) -> Option<&str> {
    const SHELLS: [&str; 7] = ["sh", "bash", "dash", "ash", "ksh", "zsh", "fish"];
    let (shell, arguments) = argv.split_first()?;
    let name = shell.rsplit('/').next()?;
    if !SHELLS.contains(&name) {
        return None;
    }
    let mut arguments = arguments.iter().map(String::as_str);
    while let Some(argument) = arguments.next() {
        if !argument.starts_with(['-', '+']) {
            return Some(argument).filter(|script| script.contains('/'));
        }
        if argument.starts_with("--") {
            continue;
        }
        if argument.contains('c') {
            let first = arguments.next()?.split_whitespace().next()?;
            return Some(first).filter(|word| word.contains('/') && is_plain(word));
        }
        // The next word names the option, as in `-euo pipefail`.
        if argument.ends_with(['o', 'O']) {
            arguments.next();
        }
    }
    None
}

/// Returns the absolute paths in a text that a shell would read unchanged.
pub(super) fn paths_in(text: &str) -> impl Iterator<Item = &str> {
    let ends = |character: char| character.is_whitespace() || "\"'`;|&()<>{}=,".contains(character);
    text.split(ends).filter(|word| word.len() > 1 && word.starts_with('/') && is_plain(word))
}

/// Returns true if a command may have written at a path. The answer is narrow only for a shell command that
/// names absolute paths and nothing that the shell would expand: such a command writes at, above or below
/// those paths, and in its working directory. Any other program may write anywhere.
pub(super) fn may_write(argv: &[String], cwd: Option<&Path>, path: &Path) -> bool {
    let text = match argv {
        [_, option, text] if option == "-c" => text,
        _ => return true,
    };
    let is_replaced = |character: char| "$`*?~[".contains(character);
    if text.contains(is_replaced) || text.contains("..") || read_by_a_shell(argv).is_some() {
        return true;
    }
    let named: Vec<&Path> = paths_in(text).map(Path::new).collect();
    let is_near = |other: &Path| path.starts_with(other) || other.starts_with(path);
    named.is_empty() || named.into_iter().chain(cwd).any(is_near)
}

/// Returns an argument vector for display: special words are quoted and escaped, and the length is bounded.
pub(super) fn shown(argv: &[String], characters: usize) -> String {
    let words: Vec<String> = argv.iter().map(|word| shell_word(word)).collect();
    short(&words.join(" "), characters)
}

#[cfg(test)]
mod tests {
    use super::{may_write, meant_for_a_shell, paths_in, read_by_a_shell, shown, vector};
    use std::path::Path;

    #[test]
    fn a_command_that_names_other_paths_wrote_elsewhere() {
        let shell = |text: &str| vector(text, Some("/bin/sh"));
        let writes = |text: &str| may_write(&shell(text), None, Path::new("/srv/fb"));
        for text in ["echo x >> /srv/fb", "rm -r /srv", "touch /srv/fb/below", "deploy", "cd $HOME"]
        {
            assert!(writes(text), "{text}");
        }
        for text in
            ["/usr/local/bin/deploy /var/log/x", "echo x >> /srv/*", "echo ../x > /var/log/x"]
        {
            assert!(writes(text), "{text}: nobody knows");
        }
        for text in ["echo x >> /srv/fa; echo . >> /var/log/fa", "cat /srv/fbx"] {
            assert!(!writes(text), "{text}");
        }
        let program = vector("/usr/bin/touch /srv/fa", None);
        assert!(may_write(&program, None, Path::new("/srv/fb")), "a program may write anywhere");
        assert!(may_write(
            &shell("echo x > /srv/fa"),
            Some(Path::new("/srv")),
            Path::new("/srv/fb")
        ));
    }

    #[test]
    fn paths_are_found_in_whatever_words() {
        let text = "test -e /a/b && [ \"$(cat '/c d')\" = x ] || . /e;f=/g >/h / $X/i /j*";
        assert_eq!(paths_in(text).collect::<Vec<_>>(), ["/a/b", "/c", "/e", "/g", "/h"]);
    }

    #[test]
    fn a_vector_is_shown_on_one_line() {
        let argv: Vec<String> = ["/bin/sh", "-c", "a\nb 'c'", ""].map(str::to_owned).into();
        assert_eq!(shown(&argv, 100), r"/bin/sh -c 'a\nb '\''c'\''' ''");
        assert_eq!(shown(&argv, 12), "/bin/sh -c …");
    }

    /// S-18: the text of a command stays as it was written.
    #[test]
    fn nothing_is_put_into_a_text() {
        assert_eq!(vector(" a  $HOME '{{ x }}'\t", None), ["a", "$HOME", "'{{", "x", "}}'"]);
        assert_eq!(vector("a ${b}; c", Some("sh")), ["sh", "-c", "a ${b}; c"]);
    }

    #[test]
    fn programs_run_by_a_shell_are_found() {
        let script = Some("/x/script");
        for (argv, found) in [
            (vec!["/bin/sh", "-c", "/x/script --y"], script),
            (vec!["bash", "-euo", "pipefail", "-c", "/x/script"], script),
            (vec!["bash", "-eu", "-o", "pipefail", "-c", " /x/script\n/x/other"], script),
            (vec!["sh", "-ec", "/x/script", "sh", "/y"], script),
            (vec!["/bin/sh", "/x/script", "/y"], script),
            (vec!["/bin/bash", "--norc", "-e", "/x/script"], script),
            (vec!["sh", "./script", "/y"], Some("./script")),
            (vec!["sh", "script", "/y"], None),
            (vec!["sh", "-c", "set -e; /x/script"], None),
            (vec!["sh", "-c", "/x/$NAME"], None),
            (vec!["sh", "-c", "/x/*"], None),
            (vec!["sh", "-c"], None),
            (vec!["sh"], None),
            (vec!["rm", "-rf", "/x/script"], None),
            (vec![], None),
        ] {
            let argv: Vec<String> = argv.into_iter().map(str::to_owned).collect();
            assert_eq!(read_by_a_shell(&argv), found, "{argv:?}");
        }
    }

    #[test]
    fn shell_only_syntax_is_found() {
        for (text, word) in [
            (r#"logger "the site has changed""#, r#""the"#),
            ("echo hello > /tmp/x", ">"),
            ("make 2>&1", "2>&1"),
            ("cd /srv && make", "&&"),
            ("rm -f $HOME/x", "$HOME/x"),
            ("rm -f /tmp/x/*", "/tmp/x/*"),
        ] {
            assert_eq!(meant_for_a_shell(text), Some(word));
        }
        for text in ["sleep 10s", "systemctl reload nginx", "find /x -name *.c", "date -d @5 +%s"] {
            assert_eq!(meant_for_a_shell(text), None, "{text}");
        }
    }
}
