//! Prepares a declared command for its start: program, arguments and environment. Nothing is inherited (S-9).
//!
//! A command of another user starts through `prlimit`, `setsid` and `setpriv` of util-linux, each of which
//! executes the next. So the pid stays the same and is also the number of the session and of the process
//! group.

use super::run_as::{Account, Switch, account};
use super::working_directory::Entry;
use crate::failure::Failure;
use crate::host::input_trust::Reader;
use crate::host::{Command, MAX_TASKS};
use crate::secrets::escape::short;
use rustix::process::{Resource, getrlimit};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command as Process, Stdio};

/// The search path of programs.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The language of programs.
const LANG: &str = "C.UTF-8";

/// The beginning of the names under which declared variables pass the programs in front.
const CARRIER: &str = "STEADFAST_";

/// The default umask of commands, independent of the daemon's umask.
const UMASK: u32 = 0o022;

/// Returns the umask of a command.
pub(in crate::host) fn umask(command: &Command) -> u32 {
    command.umask.unwrap_or(UMASK)
}

/// A command that is ready to start.
#[derive(Debug)]
pub(in crate::host) struct Prepared {
    pub(in crate::host) process: Process,
    /// The command changes its user, so it needs a session keyring of its own.
    pub(in crate::host) switches: bool,
    /// The way into the working directory, which must exist until the start.
    pub(in crate::host) entry: Entry,
}

/// Resolves everything that a command needs, so that a missing part is named. The function may block on a
/// file system or a directory service.
///
/// With `umask_in_shell` a shell in front sets the umask, for hosts on which no thread can have a umask of
/// its own.
pub(in crate::host) fn prepare(
    command: &Command,
    umask_in_shell: bool,
) -> Result<Prepared, Failure> {
    let [name, arguments @ ..] = command.argv.as_slice() else {
        return Err(Failure::new("expected a command, found an empty argument vector"));
    };
    let account = account(command)?;
    let path = variable(command, "PATH");
    let cwd = command.cwd.as_deref().unwrap_or_else(|| Path::new("/"));
    let entry = Entry::new(cwd, account.switch.as_ref())?;
    let program = find(name, path, cwd)?;
    if command.judged {
        let runs_as = account.switch.as_ref().map(Switch::uid);
        require_trusted(&program, Reader::here().on_behalf_of(runs_as))?;
    }

    let mut words: Vec<PathBuf> = Vec::new();
    if umask_in_shell {
        let script = r#"umask "$0" && exec "$@""#;
        words.extend(["/bin/sh".into(), "-c".into(), script.into()]);
        words.push(format!("{:04o}", umask(command)).into());
    }
    let switches = account.switch.is_some();
    if switches {
        words.push(helper("prlimit")?);
        words.push(nproc(command.max_tasks.unwrap_or(MAX_TASKS)).into());
        words.extend(["--".into(), helper("setsid")?]);
    }
    if switches || command.no_new_privs {
        words.push(helper("setpriv")?);
        words.extend(command.no_new_privs.then(|| "--no-new-privs".into()));
        let options = account.switch.as_ref().map(Switch::options).unwrap_or_default();
        words.extend(options.into_iter().map(PathBuf::from));
        words.push("--".into());
    }
    let is_direct = words.is_empty();
    let variables = variables(command, &account);
    if !is_direct {
        words.extend([helper("env")?, "--ignore-environment".into()]);
        words.extend(entry.option().map(PathBuf::from));
        words.push(restored(&variables)?.into());
        if program.as_os_str().as_encoded_bytes().contains(&b'=') {
            // `env` takes a word with `=` for a variable.
            words.extend([helper("setpriv")?, "--".into()]);
        }
    }
    words.push(program);

    let mut process = Process::new(&words[0]);
    process.args(&words[1..]).args(arguments);
    if is_direct {
        process.arg0(name);
    }
    process.env_clear();
    if is_direct {
        process.envs(variables);
    } else {
        process.env("PATH", PATH).env("LANG", LANG);
        let values = variables.iter().enumerate();
        process.envs(values.map(|(number, (_, value))| (format!("{CARRIER}{number}"), value)));
    }
    process.current_dir(entry.at_start());
    if !switches {
        // The other commands get a group with their session, because the leader of a group cannot start a session.
        process.process_group(0);
    }
    process.stdout(Stdio::piped()).stderr(Stdio::piped());
    process.stdin(if command.stdin.is_some() { Stdio::piped() } else { Stdio::null() });
    Ok(Prepared { process, switches, entry })
}

/// Finds a program of util-linux or coreutils that runs before the declared one.
fn helper(name: &str) -> Result<PathBuf, Failure> {
    let hint =
        format!("`user`, `group` and `no_new_privs` need {name}, of util-linux or coreutils");
    find(name, None, Path::new("/")).map_err(|failure| failure.hint(hint))
}

/// Returns the `prlimit` option for a number of tasks, at most the limit of this process: a higher one could
/// prevent the start.
fn nproc(tasks: u32) -> String {
    let most = getrlimit(Resource::Nproc).maximum.unwrap_or(u64::MAX);
    let tasks = u64::from(tasks).min(most);
    format!("--nproc={tasks}:{tasks}")
}

/// Returns the variables of the program; of two with one name, the last one counts.
fn variables<'a>(command: &'a Command, account: &'a Account) -> Vec<(&'a str, &'a str)> {
    let mut variables = vec![
        ("PATH", PATH),
        ("HOME", &account.home),
        ("USER", &account.name),
        ("LOGNAME", &account.name),
        ("SHELL", &account.shell),
        ("LANG", LANG),
    ];
    variables.extend(command.env.iter().map(|(name, value)| (name.as_str(), value.reveal())));
    variables
}

/// Returns the option of `env` that gives the variables their names again. The option contains no value,
/// because every user can read a command line: `env` itself inserts the values.
fn restored(variables: &[(&str, &str)]) -> Result<String, Failure> {
    let mut option = "--split-string=".to_owned();
    for (number, (name, _)) in variables.iter().enumerate() {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        if name.is_empty() || !name.bytes().all(is_plain) {
            let name = short(name, 30);
            return Err(Failure::new(format!("variable {name:?} of `env` has an invalid name")));
        }
        option.push_str(&format!("{name}=${{{CARRIER}{number}}} "));
    }
    Ok(option)
}

fn variable<'a>(command: &'a Command, wanted: &str) -> Option<&'a str> {
    let found = command.env.iter().rev().find(|(name, _)| name == wanted);
    found.map(|(_, value)| value.reveal())
}

/// Finds a program: a name without a slash in PATH, any other name relative to the working directory. A
/// declared PATH is never shown, because it may be a secret.
fn find(name: &str, declared: Option<&str>, cwd: &Path) -> Result<PathBuf, Failure> {
    if name.is_empty() {
        return Err(Failure::new("expected a program, found an empty name"));
    }
    if name.contains('/') {
        let program = cwd.join(name);
        return match program.metadata() {
            Ok(metadata) if is_program(&metadata) => Ok(program),
            Ok(_) => Err(Failure::new(format!("{} is not executable", shown(&program)))),
            Err(why) => Err(Failure::new(format!("program {}: {why}", shown(&program)))),
        };
    }
    let found = declared
        .unwrap_or(PATH)
        .split(':')
        .map(Path::new)
        .filter(|directory| directory.is_absolute())
        .map(|directory| directory.join(name))
        .find(|program| program.metadata().is_ok_and(|metadata| is_program(&metadata)));
    found.ok_or_else(|| {
        let mut failure = Failure::new(match declared {
            Some(_) => format!("program {name:?} not found in the PATH of its `env`"),
            None => format!("program {name:?} not found in PATH\nPATH is {PATH}"),
        });
        if name.contains(char::is_whitespace) {
            failure = failure.hint("the first element of the vector is only the program");
        }
        failure
    })
}

/// Rejects a program that another user could change if root would run it (S-11); a command's own user may
/// change the program.
fn require_trusted(program: &Path, reader: Reader) -> Result<(), Failure> {
    let Some(doubt) = reader.untrusted_on_the_way(program).filter(|_| reader.is_strict()) else {
        return Ok(());
    };
    let said = format!("program {}: another user could change the file\n{doubt}", shown(program));
    Err(Failure::new(said).hint("make root the owner of the file and all parent directories"))
}

fn is_program(metadata: &std::fs::Metadata) -> bool {
    metadata.is_file() && metadata.permissions().mode() & 0o111 != 0
}

fn shown(path: &Path) -> String {
    short(&path.to_string_lossy(), 60)
}

#[cfg(test)]
mod tests {
    use super::prepare;
    use crate::host::Command;

    /// S-9: on hosts where no thread can have its own umask, a shell in front sets the umask and changes nothing
    /// else.
    #[test]
    fn a_shell_in_front_sets_the_umask_and_nothing_else() {
        let script = "umask; env; printf '%s|' \"$@\"";
        let argv = ["/bin/sh", "-c", script, "x", "$(id)", "", "-n a"].map(str::to_owned).into();
        let mut command = Command { argv, umask: Some(0o027), ..Command::default() };
        let printed = |command: &Command, umask_in_shell| {
            let output = prepare(command, umask_in_shell).unwrap().process.output().unwrap();
            String::from_utf8(output.stdout).unwrap()
        };
        let seen = printed(&command, true);
        assert!(seen.starts_with("0027\n") && seen.ends_with("$(id)||-n a|"), "{seen}");
        let without = printed(&command, false);
        assert_eq!(seen.split_once('\n').unwrap().1, without.split_once('\n').unwrap().1);
        command.user = Some("nobody".to_owned());
        command.umask = None;
        let seen = printed(&command, true);
        assert!(seen.starts_with("0022\n") && seen.contains("USER=nobody"), "{seen}");
    }

    /// S-6, S-9: the values of variables are in no command line, and under no name that the loader reads.
    #[test]
    fn programs_in_front_have_a_fixed_environment() {
        let argv = vec!["/bin/true".to_owned()];
        let env = vec![("LD_PRELOAD".to_owned(), "CANARY".to_owned().into())];
        let user = Some("nobody".to_owned());
        let process = prepare(&Command { argv, env, user, ..Command::default() }, true).unwrap();
        let process = process.process;
        assert!(!process.get_args().any(|word| word.to_string_lossy().contains("CANARY")));
        let names = process.get_envs().map(|(name, _)| name.to_string_lossy().into_owned());
        let declared = |name: &String| !name.starts_with("STEADFAST_");
        assert_eq!(names.filter(declared).collect::<Vec<_>>(), ["LANG", "PATH"]);
    }
}
