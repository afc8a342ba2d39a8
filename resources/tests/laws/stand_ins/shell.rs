//! Small programs of every host, and a shell that splits its text at white space.

use super::{Ended, done, exists};
use steadfast_resources::host::simulated::Machine;

/// Runs a small program.
pub(crate) fn run(machine: &Machine, argv: &[&str], _input: &str) -> Option<Ended> {
    let says = |is_true: bool| if is_true { Ok(String::new()) } else { Err(String::new()) };
    Some(match argv {
        ["/bin/sh", "-c", script, ..] if script.contains("systemd-analyze") => Ok(String::new()),
        ["/bin/sh", "-c", text, ..] => {
            let words: Vec<&str> = text.split_whitespace().collect();
            return run(machine, &words, "");
        }
        ["true"] => Ok(String::new()),
        ["echo", word] => Ok(format!("{word}\n")),
        ["touch", path] => done(machine.write(path, "touched")),
        ["test", "-e", path] => says(exists(machine, path)),
        ["mkdir", "--", path] => done(machine.make_directories(path)),
        ["rm", "-f", "--", paths @ ..] => {
            paths.iter().map(|path| done(machine.remove(path))).collect()
        }
        ["rm", "-rf", "--one-file-system", "--", path] => done(machine.remove(path)),
        ["sync", "-f", "--", _] => Ok(String::new()),
        ["mktemp", "-d", "--", pattern] => {
            let name = |number: u32| pattern.replace("XXXXXXXXXX", &format!("{number:010}"));
            let path = (0..100).map(name).find(|path| !exists(machine, path)).expect("a free name");
            let made = machine.make_directories(&path).and_then(|()| machine.chmod(&path, 0o700));
            done(made).map(|_| format!("{path}\n"))
        }
        ["find", path, "-mindepth", "1", "-print", "-quit"] => {
            let names = machine.names(path).unwrap_or_default();
            Ok(names.keys().next().map(|_| "one\n".to_owned()).unwrap_or_default())
        }
        _ => return None,
    })
}
