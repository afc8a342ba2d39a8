//! Stand-ins of curl, tar, unzip and git, and of the scripts that place an unpacked archive.
//!
//! A server is the folder /net: the address `http://a/b` is the file /net/a/b. An archive is a text: each line is
//! PATH=CONTENT, or @PATH=TARGET for a link. A repository is a text: each line is a commit and a reference.

use super::{Ended, done, exists, text};
use steadfast_resources::host::simulated::Machine;

/// Runs a program that brings something from elsewhere.
pub(crate) fn run(machine: &Machine, argv: &[&str], input: &str) -> Option<Ended> {
    match argv {
        ["curl", ..] => Some(curl(machine, input)),
        ["tar", "--extract", rest @ ..] => Some(tar(machine, rest)),
        ["unzip", "-q", "-o", packed, "-d", tree] => {
            Some(unpack(machine, &text(machine, packed), tree, 0))
        }
        ["sh", "-c", script, "sh", arguments @ ..] => place(machine, script, arguments),
        ["git", words @ ..] => Some(git(machine, words)),
        _ => None,
    }
}

fn curl(machine: &Machine, config: &str) -> Ended {
    let option = |name: &str| {
        let line = config.lines().find_map(|line| line.strip_prefix(&format!("{name} = \"")));
        line.map(|value| value.trim_end_matches('"').to_owned()).expect("an option")
    };
    let from = option("url").replace("http://", "/net/");
    let content = machine.content(from).ok_or("curl: (22) 404")?;
    done(machine.write(option("output"), content))
}

fn tar(machine: &Machine, options: &[&str]) -> Ended {
    let value = |name: &str| {
        let at = options.iter().position(|option| *option == name).expect("an option");
        options[at + 1]
    };
    let strip = options.iter().find_map(|option| option.strip_prefix("--strip-components="));
    let strip = strip.expect("an option").parse().expect("a number");
    unpack(machine, &text(machine, value("--file")), value("--directory"), strip)
}

fn unpack(machine: &Machine, archive: &str, tree: &str, strip: usize) -> Ended {
    for line in archive.lines() {
        let (path, content) = line.split_once('=').ok_or("tar: not an archive")?;
        let (path, is_link) = match path.strip_prefix('@') {
            Some(path) => (path, true),
            None => (path, false),
        };
        let below: Vec<&str> = path.split('/').skip(strip).collect();
        let Some((_, folders)) = below.split_last() else { continue };
        let folder = [&[tree][..], folders].concat().join("/");
        let to = format!("{tree}/{}", below.join("/"));
        let made = machine.make_directories(folder).and_then(|()| {
            if is_link { machine.symlink(content, to) } else { machine.write(to, content) }
        });
        done(made)?;
    }
    Ok(String::new())
}

/// Runs the scripts of the kind `archive`.
fn place(machine: &Machine, script: &str, arguments: &[&str]) -> Option<Ended> {
    Some(match arguments {
        [tree, record, _owner, mode] if script.contains("chown -hR") => {
            let mode = u32::from_str_radix(mode, 8).expect("octal");
            let removed = machine.remove(format!("{tree}/{record}"));
            done(removed.and_then(|()| machine.chmod(tree, mode)))
        }
        [tree, stripped, "2"] if script.contains("-mindepth") => {
            done(machine.make_directories(stripped).and_then(|()| strip(machine, tree, stripped)))
        }
        [place, new] if script.contains("mv -T") => done(machine.rename_over(new, place)),
        [place, new, old] if script.contains("mv -T") => {
            let is_there = exists(machine, place);
            let moved = if is_there { machine.rename_over(place, old) } else { Ok(()) };
            done(moved.and_then(|()| machine.rename_over(new, place)))
        }
        _ => return None,
    })
}

/// Moves the entries of the top directories of a tree.
fn strip(machine: &Machine, tree: &str, to: &str) -> Result<(), rustix::io::Errno> {
    let names = |path: &str| {
        let names = machine.names(path).unwrap_or_default().into_keys();
        names.map(|name| String::from_utf8(name).expect("text")).collect::<Vec<_>>()
    };
    for top in names(tree) {
        for name in names(&format!("{tree}/{top}")) {
            machine.rename_over(format!("{tree}/{top}/{name}"), format!("{to}/{name}"))?;
        }
    }
    Ok(())
}

/// Runs git. The state of a working tree is in small files below `.git`.
fn git(machine: &Machine, words: &[&str]) -> Ended {
    let (tree, words) = match words {
        ["-C", tree, rest @ ..] => (*tree, rest),
        rest => ("", rest),
    };
    // The options of every call.
    let words = &words[8..];
    let at = |name: &str| format!("{tree}/.git/{name}");
    let read = |name: &str| text(machine, &at(name));
    let silent = |is_well: bool| if is_well { Ok(String::new()) } else { Err(String::new()) };
    match words {
        ["ls-remote", "--", repo] => Ok(text(machine, repo).replace(' ', "\t")),
        ["init", .., path] => {
            done(machine.make_directories(format!("{path}/.git")))?;
            done(machine.write(format!("{path}/.git/HEAD"), ""))
        }
        ["config", "--get", key] => match read(key) {
            value if value.is_empty() => Err(String::new()),
            value => Ok(value + "\n"),
        },
        ["config", "--unset", key] => done(machine.remove(at(key))),
        ["config", key, value] => done(machine.write(at(key), value)),
        ["fetch", .., reference] => {
            let reference = reference.trim_start_matches('+').split(':').next().expect("a name");
            let remote = text(machine, &read("remote.origin.url"));
            let mut lines = remote.lines().filter_map(|line| line.split_once(' '));
            let found = lines.find(|(commit, name)| *name == reference || *commit == reference);
            let (commit, _) = found.ok_or("fatal: no such reference")?;
            done(machine.write(at("fetched"), commit))
        }
        ["rev-parse", "--git-dir"] => silent(exists(machine, &at("HEAD"))),
        ["rev-parse", "--verify", "-q", object] => {
            let name = object.trim_end_matches("^{commit}");
            let commit = match name {
                "HEAD" => read("HEAD"),
                "refs/steadfast/version" => read("fetched"),
                name => Some(read("fetched")).filter(|it| it == name).unwrap_or_default(),
            };
            if commit.is_empty() { Err(String::new()) } else { Ok(commit + "\n") }
        }
        ["status", ..] => {
            let is_changed =
                !read("HEAD").is_empty() && text(machine, &format!("{tree}/file")) != read("HEAD");
            Ok(if is_changed { " M file\n".to_owned() } else { String::new() })
        }
        ["checkout", .., commit] => {
            done(machine.write(format!("{tree}/file"), commit))?;
            done(machine.write(at("HEAD"), commit))
        }
        ["cat-file", "-t", _] => Ok("commit\n".to_owned()),
        // Every reference and commit was fetched.
        ["for-each-ref" | "rev-list", ..] => Ok(String::new()),
        ["verify-commit", _] => Ok(String::new()),
        _ => panic!("the stand-in of git does not know {words:?}"),
    }
}
