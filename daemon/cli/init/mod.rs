//! `steadfast init`: a first graph of this host, and the settings.
//!
//! The graph declares only what is so already: each resource is checked before it is written, and one that differs
//! becomes a comment. Contents of files, passwords and hashes are never written. An existing file is never touched.
//!
//! Reading order: this file (the command), `collect` (the objects of the host), `graph_text` (the text of the graph),
//! `new_file` (files that must not exist).

mod collect;
mod graph_text;
mod new_file;

use super::args::Init;
use super::exit::Exit;
use super::output::{error, plain, print};
use super::settings::SETTINGS;
use new_file::{NotWritten, write_new};
use std::path::Path;
use steadfast_resources::Host;

/// The settings that go with the graph.
const SETTINGS_TEXT: &str = "\
# The settings of this host. `steadfast explain settings` lists all of them.
graph: graph.yaml
# A change of the graph, or of a file that it uses, is applied at once; without `watch`, `steadfast reload` applies it.
watch: true
";

/// The file names of the graph and the settings.
const FILES: [&str; 2] = ["graph.yaml", "steadfast.yaml"];

/// Writes the graph and the settings, and prints the next commands.
pub(super) fn init(args: &Init) -> Exit {
    let [graph, settings] = FILES.map(|name| args.dir.join(name));
    if graph.symlink_metadata().is_ok() {
        return report(&NotWritten::Exists, &graph);
    }
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(why) => {
            error(format!("cannot start: {why}"), None);
            return Exit::Failed;
        }
    };
    let sections = runtime.block_on(collect::collect_sections(&Host::default()));
    let text = graph_text::graph_text(&host_name(), &sections);
    if let Err(why) = write_new(&graph, &text) {
        return report(&why, &graph);
    }
    print(format!("{}: {}", written(&graph), graph_text::summary(&sections)));
    match write_new(&settings, SETTINGS_TEXT) {
        Ok(()) => print(written(&settings)),
        Err(NotWritten::Exists) => {
            print(format!("{} exists and stays as it is", plain(&settings.to_string_lossy())));
        }
        Err(why) => return report(&why, &settings),
    }
    print_next(&graph, &settings);
    Exit::Well
}

/// Prints the next three commands.
fn print_next(graph: &Path, settings: &Path) {
    let shown = plain(&graph.to_string_lossy());
    let lines = if settings == Path::new(SETTINGS) {
        [
            ("steadfast plan".to_owned(), "shows the changes to this host: none yet"),
            (
                "systemctl enable --now steadfast".to_owned(),
                "starts the daemon, which holds the host to the graph",
            ),
            ("steadfast status".to_owned(), "shows the host; `steadfast top` does so continuously"),
        ]
    } else {
        [
            (format!("steadfast plan {shown}"), "shows the changes to this host: none yet"),
            (format!("steadfast run --watch {shown}"), "holds the host to the graph until stopped"),
            ("steadfast status".to_owned(), "shows the host; `steadfast top` does so continuously"),
        ]
    };
    let width = lines.iter().map(|(command, _)| command.len()).max().unwrap_or_default();
    print("\nNext:");
    for (command, about) in lines {
        print(format!("  {command:width$}  {about}"));
    }
}

fn written(path: &Path) -> String {
    format!("wrote {}", plain(&path.to_string_lossy()))
}

fn report(why: &NotWritten, path: &Path) -> Exit {
    let shown = plain(&path.to_string_lossy());
    match why {
        NotWritten::Exists => {
            let hint = "init never overwrites; `steadfast init --dir DIR` writes to another folder";
            error(format!("{shown} exists"), Some(hint));
            Exit::Failed
        }
        NotWritten::Failed(why) if why.kind() == std::io::ErrorKind::PermissionDenied => {
            let hint = "run this command as root, or choose a folder: `steadfast init --dir DIR`";
            error(format!("{shown} cannot be written: {why}"), Some(hint));
            Exit::Permission
        }
        NotWritten::Failed(why) => {
            error(format!("{shown} cannot be written: {why}"), Some("choose a folder with --dir"));
            Exit::Failed
        }
    }
}

/// Returns the name of this host; the graph is called like the host.
fn host_name() -> String {
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || ".-".contains(letter);
    if !name.is_empty() && name.chars().all(is_name) { name } else { "host".to_owned() }
}
