//! The command that must accept staged files: directly, or under their final paths in a private mount namespace.

use std::collections::BTreeSet;
use std::path::Path;

/// The placeholder for the path of the staged file.
pub(crate) const CANDIDATE: &str = "%s";

/// The word that ends the overlays, and the pairs of paths.
const END: &str = "--";

/// Shows staged files at their final paths, and runs the words behind the second `--`.
///
/// The first arguments are overlays: a folder, a number of files, and for each file its staged path and its path below
/// the folder. The files stand in the upper folder before the overlay is mounted: nothing outside sees them, and no
/// link of the folder is followed. Then come pairs of a staged path and the path of an existing file, which the
/// staged one covers; the cover is read-only, so that no command writes into a staged file. The overlays come first,
/// because an overlay hides the mounts below its folder.
const SCRIPT: &str = "set -e; while [ \"$1\" != -- ]; do folder=$1; count=$2; shift 2; \
    case $folder/ in /mnt/*) work=/media;; *) work=/mnt;; esac; \
    mount -t tmpfs tmpfs \"$work\"; mkdir \"$work/new\" \"$work/work\"; \
    while [ \"$count\" -gt 0 ]; do count=$((count - 1)); \
    case $2 in */*) mkdir -p \"$work/new/${2%/*}\";; esac; \
    cp -p \"$1\" \"$work/new/$2\"; shift 2; done; cd \"$folder\"; \
    mount -t overlay overlay -o \"lowerdir=.,upperdir=$work/new,workdir=$work/work\" \"$folder\"; \
    cd /; umount -l \"$work\"; done; shift; \
    while [ \"$1\" != -- ]; do mount --bind \"$1\" \"$2\"; mount -o remount,bind,ro \"$2\"; shift 2; done; \
    shift; exec \"$@\"";

/// The words before the folders.
const START: [&str; 8] =
    ["unshare", "--mount", "--propagation", "private", "/bin/sh", "-c", SCRIPT, "sh"];

/// A validation command as declared; without words there is none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ValidateCommand {
    argv: Vec<String>,
    in_place: bool,
}

/// A staged file and its final path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StagedFile {
    pub(crate) staged: String,
    pub(crate) path: String,
}

impl ValidateCommand {
    pub(crate) const NONE: Self = Self { argv: Vec::new(), in_place: false };

    pub(crate) fn new(argv: Vec<String>, in_place: bool) -> Self {
        Self { argv, in_place }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.argv.is_empty()
    }

    /// Returns the program of the command.
    pub(crate) fn program(&self) -> Option<&String> {
        self.argv.first()
    }

    /// Returns true if the command runs in a private mount namespace.
    pub(crate) fn is_in_place(&self) -> bool {
        self.in_place
    }

    /// Returns the command if one run can judge several files: in place, and without the path of one of them.
    pub(crate) fn shared_run(&self) -> Option<&[String]> {
        let names_one = self.argv.iter().any(|word| word.contains(CANDIDATE));
        (self.in_place && !names_one && !self.is_empty()).then_some(&self.argv)
    }

    /// Returns the call that judges these files. A command that is not in place judges the first one.
    pub(crate) fn call(&self, files: &[StagedFile]) -> Vec<String> {
        let Some(first) = files.first() else { return self.argv.clone() };
        if !self.in_place {
            return self.argv.iter().map(|word| word.replace(CANDIDATE, &first.staged)).collect();
        }
        let mut call: Vec<String> = START.map(str::to_owned).into();
        let is_covered = |file: &&StagedFile| {
            std::fs::symlink_metadata(&file.path).is_ok_and(|found| found.is_file())
        };
        let (covered, others): (Vec<_>, Vec<_>) = files.iter().partition(is_covered);
        for folder in outer_folders(&others) {
            let below = |file: &&&StagedFile| Path::new(&file.path).starts_with(folder);
            let own: Vec<_> = others.iter().filter(below).collect();
            call.extend([folder.display().to_string(), own.len().to_string()]);
            for file in own {
                let rest = Path::new(&file.path)
                    .strip_prefix(folder)
                    .unwrap_or_else(|_above| Path::new(""));
                call.extend([file.staged.clone(), rest.display().to_string()]);
            }
        }
        call.push(END.to_owned());
        call.extend(covered.iter().flat_map(|it| [it.staged.clone(), it.path.clone()]));
        call.push(END.to_owned());
        call.extend(self.argv.iter().map(|word| word.replace(CANDIDATE, &first.path)));
        call
    }
}

/// Returns the folders of the files without folders below others: one overlay shows all files below it.
fn outer_folders<'f>(files: &[&'f StagedFile]) -> Vec<&'f Path> {
    let folders: BTreeSet<&Path> =
        files.iter().filter_map(|it| Path::new(&it.path).parent()).collect();
    let mut outer: Vec<&Path> = Vec::new();
    for folder in folders {
        if !outer.iter().any(|above| folder.starts_with(above)) {
            outer.push(folder);
        }
    }
    outer
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(words: &[&str], in_place: bool) -> ValidateCommand {
        ValidateCommand::new(words.iter().map(|word| (*word).to_owned()).collect(), in_place)
    }

    fn staged(staged: &str, path: &str) -> StagedFile {
        StagedFile { staged: staged.to_owned(), path: path.to_owned() }
    }

    #[test]
    fn a_command_gets_the_path_of_the_staged_file() {
        let file = staged("/etc/.staged/f", "/etc/sudoers");
        let plain = command(&["/usr/sbin/visudo", "-cf", "%s"], false);
        assert_eq!(plain.call(&[file]), ["/usr/sbin/visudo", "-cf", "/etc/.staged/f"]);
        assert_eq!(plain.shared_run(), None);
        assert_eq!(plain.program().map(String::as_str), Some("/usr/sbin/visudo"));
    }

    #[test]
    fn a_command_in_place_gets_the_final_path() {
        let path = "/nowhere/sshd_config";
        let checks = command(&["sshd", "-t", "-f", "%s"], true);
        let call = checks.call(&[staged("/nowhere/.staged/f", path)]);
        let rest = &call[START.len()..];
        let overlay = ["/nowhere", "1", "/nowhere/.staged/f", "sshd_config", "--", "--"];
        assert_eq!(rest, [&overlay[..], &["sshd", "-t", "-f", path]].concat());
        assert_eq!(checks.shared_run(), None, "it names one file");
    }

    #[test]
    fn missing_files_below_one_folder_share_an_overlay() {
        let files = [
            staged("/x/1", "/nowhere/b/c/one"),
            staged("/x/2", "/nowhere/b/two"),
            staged("/x/3", "/nowhere/bc/three"),
            staged("/x/4", "/etc/passwd"),
        ];
        let words = command(&["nginx", "-t"], true);
        assert_eq!(words.shared_run().map(<[String]>::len), Some(2));
        let call = words.call(&files);
        let rest: Vec<&str> = call[START.len()..].iter().map(String::as_str).collect();
        let overlays = ["/nowhere/b", "2", "/x/1", "c/one", "/x/2", "two", "/nowhere/bc", "1"];
        let pairs = ["/x/3", "three", "--", "/x/4", "/etc/passwd", "--", "nginx", "-t"];
        assert_eq!(rest, [overlays, pairs].concat());
    }
}
