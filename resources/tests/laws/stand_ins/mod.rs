//! The commands of other programs on the simulated host, as far as the kinds call them.

pub(crate) mod firewall;
pub(crate) mod packages;
pub(crate) mod shell;
pub(crate) mod sources;

use std::future::ready;
use steadfast_resources::host::simulated::{Machine, here};
use steadfast_resources::host::{Captured, Command, End, Finished};

/// The end of a command: its output, or its error output with the exit code 1.
pub(crate) type Ended = Result<String, String>;

/// A stand-in of some programs: the arguments and the input; none for an unknown command.
pub(crate) type StandIn = fn(&Machine, &[&str], &str) -> Option<Ended>;

/// Makes the folders of a fresh host, and gives it these stand-ins.
pub(crate) fn install(machine: &Machine, folders: &[&str], stand_ins: &'static [StandIn]) {
    for folder in folders {
        machine.make_directories(folder).expect("made");
    }
    machine.set_runner(move |command, _stop| {
        let ended = here().expect("a simulated host").foreign(|here| run(here, command, stand_ins));
        Box::pin(ready(Ok(finished(ended))))
    });
}

fn run(machine: &Machine, command: &Command, stand_ins: &[StandIn]) -> Ended {
    let argv: Vec<&str> = command.argv.iter().map(String::as_str).collect();
    let input = command.stdin.as_ref().map(|input| input.reveal().to_owned()).unwrap_or_default();
    let ended = stand_ins.iter().find_map(|stand_in| stand_in(machine, &argv, &input));
    ended.unwrap_or_else(|| panic!("the simulated host does not know the command {argv:?}"))
}

fn finished(ended: Ended) -> Finished {
    let (mut stdout, mut stderr) = (Captured::default(), Captured::default());
    let code = i32::from(ended.is_err());
    match ended {
        Ok(text) => stdout.push(text.as_bytes()),
        Err(text) => stderr.push(text.as_bytes()),
    }
    Finished { end: End::Exited(code), stdout, stderr, held: false }
}

/// Returns a file as text; an empty text if there is no file.
pub(crate) fn text(machine: &Machine, path: &str) -> String {
    String::from_utf8(machine.content(path).unwrap_or_default()).expect("text")
}

/// Returns true if there is an object at a path.
pub(crate) fn exists(machine: &Machine, path: &str) -> bool {
    machine.look(|tree| tree.at(path).is_some())
}

/// Turns the result of a file operation into the end of a command.
pub(crate) fn done(result: Result<(), rustix::io::Errno>) -> Ended {
    result.map(|()| String::new()).map_err(|errno| format!("error: {errno}\n"))
}
