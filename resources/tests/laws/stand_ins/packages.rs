//! Stand-ins of apt and dpkg: the packages of the repositories are lines of a file, and dpkg's status is its own file.

use super::{Ended, done, text};
use steadfast_resources::host::packages::{LISTS, STATUS};
use steadfast_resources::host::simulated::Machine;

/// The packages of the repositories: each line is a name and a version.
pub(crate) const AVAILABLE: &str = "/var/lib/available";

/// The paragraph of dpkg itself, which names the architecture.
pub(crate) const OWN: &str =
    "Package: dpkg\nStatus: install ok installed\nArchitecture: amd64\nVersion: 1.21\n";

/// Runs apt or dpkg.
pub(crate) fn run(machine: &Machine, argv: &[&str], input: &str) -> Option<Ended> {
    match argv {
        ["apt-get", words @ ..] => Some(apt(machine, words)),
        // The lists of one repository are read with the old times of the folders.
        ["sh", "-c", script, "sh", "apt-get", words @ ..] if script.contains("lists=") => {
            Some(apt(machine, words))
        }
        ["debconf-set-selections"] => {
            Some(done(machine.write("/var/cache/debconf/config.dat", input)))
        }
        ["dpkg", "--purge", "--", names @ ..] => {
            Some(names.iter().map(|name| change(machine, name, None)).collect())
        }
        ["dpkg", "--set-selections"] => Some(
            input
                .lines()
                .filter_map(|line| line.split_once(' '))
                .map(|(name, word)| select(machine, name, word))
                .collect(),
        ),
        _ => None,
    }
}

fn apt(machine: &Machine, words: &[&str]) -> Ended {
    if words.contains(&"update") {
        return update(machine, words);
    }
    let at = words.iter().position(|word| *word == "--").expect("operands");
    let is_simulated = words.contains(&"-s");
    let mut says = String::new();
    for operand in &words[at + 1..] {
        if let Some(name) = operand.strip_suffix('-') {
            says += &format!("Remv {name} [1]\n");
            if !is_simulated {
                let version = field(machine, name, "Version").ok_or("E: not installed")?;
                change(machine, name, Some(("deinstall ok config-files", &version)))?;
            }
            continue;
        }
        let (name, wanted) = match operand.split_once('=') {
            Some((name, version)) => (name, Some(version)),
            None => (*operand, None),
        };
        let available = text(machine, AVAILABLE);
        let mut found = available.lines().filter_map(|line| line.split_once(' '));
        let found = found.find(|it| it.0 == name && wanted.is_none_or(|wanted| wanted == it.1));
        let (_, version) = found.ok_or_else(|| format!("E: Unable to locate package {name}\n"))?;
        if field(machine, name, "Version").as_deref() == Some(version)
            && field(machine, name, "Status").is_some_and(|it| it.ends_with(" installed"))
        {
            continue;
        }
        says += &format!("Inst {name} ({version} Debian [amd64])\n");
        if !is_simulated {
            change(machine, name, Some(("install ok installed", version)))?;
        }
    }
    Ok(says)
}

/// Makes the lists of one repository, or new ones of all.
fn update(machine: &Machine, words: &[&str]) -> Ended {
    let list = words.iter().find_map(|word| word.strip_prefix("Dir::Etc::sourcelist="));
    let Some(list) = list else { return done(machine.write(format!("{LISTS}/all"), "lists")) };
    let source = text(machine, list);
    let value = |key: &str| {
        let line = source.lines().find_map(|line| line.strip_prefix(&format!("{key}: ")));
        line.unwrap_or_default().to_owned()
    };
    let uri = value("URIs").replace("http://", "").replace('/', "_");
    for suite in value("Suites").split(' ') {
        done(machine.write(format!("{LISTS}/{uri}_dists_{suite}_InRelease"), "list"))?;
    }
    Ok(String::new())
}

/// Returns the paragraphs of the status, each with the name of its package.
fn paragraphs(machine: &Machine) -> Vec<(String, String)> {
    let status = text(machine, STATUS);
    let name = |paragraph: &str| {
        let line = paragraph.lines().find_map(|line| line.strip_prefix("Package: "));
        line.unwrap_or_default().to_owned()
    };
    let all = status.split("\n\n").filter(|paragraph| !paragraph.trim().is_empty());
    all.map(|it| (name(it), it.trim_end().to_owned())).collect()
}

fn field(machine: &Machine, name: &str, key: &str) -> Option<String> {
    let (_, paragraph) = paragraphs(machine).into_iter().find(|(found, _)| found == name)?;
    let line = paragraph.lines().find_map(|line| line.strip_prefix(&format!("{key}: ")))?;
    Some(line.to_owned())
}

/// Gives a package a status and a version, or removes its paragraph.
fn change(machine: &Machine, name: &str, status: Option<(&str, &str)>) -> Ended {
    let others = paragraphs(machine).into_iter().filter(|(found, _)| found != name);
    let mut all: Vec<String> = others.map(|(_, paragraph)| paragraph).collect();
    all.extend(status.map(|(status, version)| {
        format!("Package: {name}\nStatus: {status}\nArchitecture: amd64\nVersion: {version}")
    }));
    done(machine.replace(STATUS, all.join("\n\n") + "\n"))
}

fn select(machine: &Machine, name: &str, word: &str) -> Ended {
    let status = field(machine, name, "Status").ok_or("dpkg: no such package")?;
    let version = field(machine, name, "Version").unwrap_or_default();
    let (_, rest) = status.split_once(' ').expect("words");
    change(machine, name, Some((&format!("{word} {rest}"), &version)))
}
