//! Output that cannot be written makes a command fail (B10).

use crate::host::Host;
use std::fs::File;
use std::process::Stdio;

const GRAPH: &str = r#"
graph: full
resources:
  file:
  - {name: a, path: $DIR/a, content: "x"}
"#;

#[test]
fn a_full_standard_output_fails_the_command() {
    let host = Host::with(GRAPH);
    host.apply().exits(0);
    let all = [&["plan", "--json"][..], &["plan"], &["plan", "--detailed-exitcode"], &["graph"]];
    for words in all {
        let mut command = host.command(words);
        command.stdout(File::options().write(true).open("/dev/full").expect("opened"));
        let output = host.finish(command);
        output.exits(1).says("error: cannot write to standard output: No space left on device");
        assert_eq!(output.stderr.lines().count(), 1, "{output}");
    }
    let mut help = host.bare(&["--help"]);
    help.stdout(File::options().write(true).open("/dev/full").expect("opened"));
    host.finish(help).exits(1);
}

/// A reader that closes the pipe is no failure.
#[test]
fn a_closed_pipe_is_no_failure() {
    let host = Host::with(GRAPH);
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let mut command = host.command(&["plan", "--json"]);
    command.stdout(Stdio::from(writer));
    let output = host.finish(command);
    assert_eq!((output.exits(0).stderr.as_str(), output.stdout.as_str()), ("", ""));
}
