//! The needs of an exec: the files of its commands, its watched paths, its working directory and its user.

use super::{Exec, argv};
use crate::dependency::{HostObject, Need};
use crate::host::Command;
use crate::watch_source::WatchSource;
use std::path::{Path, PathBuf};

impl Exec {
    pub(super) fn needed(&self) -> Vec<Need> {
        let mut needs = Vec::new();
        for command in self.commands() {
            let program = command.argv.first().map(String::as_str);
            let programs = program.into_iter().chain(argv::read_by_a_shell(&command.argv));
            // No resource provides a program that PATH resolves; a path is relative to the working directory.
            let programs = programs.filter(|it| it.contains('/') && !it.contains(".."));
            let from = command.cwd.as_deref().unwrap_or_else(|| Path::new("/"));
            let places = programs.map(|program| from.join(program));
            needs.extend(places.map(|place| Need::path(place, "contains the command")));
            needs.extend(
                command.cwd.iter().map(|path| Need::path(path, "is the working directory")),
            );
        }
        for source in &self.watch {
            match source {
                WatchSource::Path { path, .. } if self.guards.creates.as_ref() == Some(path) => {}
                WatchSource::Path { path, below: true } => {
                    needs.push(Need::tree(path, "is watched"));
                }
                WatchSource::Path { path, .. } => needs.push(Need::path(path, "is watched")),
                WatchSource::Supply(_)
                | WatchSource::Tree(_)
                | WatchSource::Every(_)
                | WatchSource::Lines(_)
                | WatchSource::Polled(_)
                | WatchSource::World(_)
                | WatchSource::Unit { .. } => {}
            }
        }
        let made_in = self.guards.creates.as_deref().and_then(Path::parent);
        needs.extend(made_in.map(|parent| {
            let parent = HostObject::Path(parent.to_owned());
            Need::exact(parent, "contains what the command creates")
        }));
        needs.extend(self.command.user.iter().filter_map(|user| Need::user(user, "runs as")));
        needs.extend(self.command.group.iter().filter_map(|name| Need::group(name, "runs as")));
        needs
    }

    /// Returns the programs that no other user may be able to change. A command that runs as another user is left
    /// out, because that user may have written its program. The default PATH contains only folders of root.
    pub(super) fn trusted(&self) -> Vec<PathBuf> {
        let own = self.commands().filter(|command| command.user.is_none());
        own.filter_map(|command| self.program(command)).collect()
    }

    /// Returns the path of a command's program, from the working directory or the declared PATH. A PATH that may
    /// be secret is not searched, because the result would show it.
    fn program(&self, command: &Command) -> Option<PathBuf> {
        let name = command.argv.first().filter(|name| !name.is_empty())?;
        if name.contains('/') {
            let from = command.cwd.as_deref().unwrap_or_else(|| Path::new("/"));
            return Some(from.join(name));
        }
        let declared = command.env.iter().rev().find(|(name, _)| name == "PATH");
        let (_, path) = declared.filter(|_| !self.secret)?;
        let folders = path.reveal().split(':').map(Path::new).filter(|it| it.is_absolute());
        folders.map(|folder| folder.join(name)).find(|program| program.is_file())
    }

    /// Returns the paths that decide about a run: those that `creates` and `mtimes` name, and every absolute path
    /// in a guard command.
    pub(super) fn read_by_guards(&self) -> Vec<PathBuf> {
        let guards = self.guards.only_if.iter().chain(&self.guards.unless);
        let named = guards.flat_map(|guard| &guard.argv).flat_map(|word| argv::paths_in(word));
        let own = self.guards.creates.iter().chain(&self.guards.mtimes).cloned();
        own.chain(named.map(PathBuf::from)).collect()
    }

    /// Returns the files that decide about a guard command: each argument that is the absolute path of a regular file,
    /// or of nothing as yet, and the table that `getent passwd NAME` or `getent group NAME` reads.
    pub(super) fn guard_files(&self) -> Vec<PathBuf> {
        let guards = self.guards.only_if.iter().chain(&self.guards.unless);
        let mut files: Vec<PathBuf> = Vec::new();
        for guard in guards {
            let paths = guard.argv.iter().skip(1).flat_map(|word| {
                let is_read = move |path: &&str| {
                    // The text of a shell can write a file that does not exist.
                    Path::new(path).is_file() || (word == path && may_be_made(Path::new(path)))
                };
                argv::paths_in(word).filter(is_read).map(PathBuf::from)
            });
            let tables = account_tables(&guard.argv).into_iter().map(PathBuf::from);
            for path in paths.chain(tables) {
                if !files.contains(&path) {
                    files.push(path);
                }
            }
        }
        files
    }

    /// Returns every command of the exec.
    pub(super) fn commands(&self) -> impl Iterator<Item = &Command> {
        let watch = self.watch.iter().filter_map(|source| match source {
            WatchSource::Lines(command) => Some(command),
            WatchSource::Path { .. }
            | WatchSource::Supply(_)
            | WatchSource::Tree(_)
            | WatchSource::Every(_)
            | WatchSource::Polled(_)
            | WatchSource::World(_)
            | WatchSource::Unit { .. } => None,
        });
        let guards = self.guards.only_if.iter().chain(&self.guards.unless);
        let more = guards.chain(&self.done).chain(&self.changed_when);
        std::iter::once(&self.command).chain(more).chain(watch)
    }
}

/// Returns true for a path of nothing in a directory: the command itself may create it.
fn may_be_made(path: &Path) -> bool {
    let found = path.metadata();
    found.is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound)
        && path.parent().is_some_and(Path::is_dir)
}

/// Returns the tables of accounts that a guard reads by `getent`.
fn account_tables(argv: &[String]) -> Vec<&'static str> {
    let words = argv.iter().flat_map(|word| word.split_whitespace()).collect::<Vec<_>>();
    let tables = words.windows(2).filter_map(|pair| match pair {
        [program, "passwd"] if is_getent(program) => Some("/etc/passwd"),
        [program, "group"] if is_getent(program) => Some("/etc/group"),
        _ => None,
    });
    tables.collect()
}

fn is_getent(program: &str) -> bool {
    program.rsplit('/').next() == Some("getent")
}
