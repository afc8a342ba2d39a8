//! The programs that change users and groups (useradd, usermod, gpasswd, chpasswd, …), with their failures explained.

use super::commands::{TIMEOUT, failed};
use super::field_reader::bounded;
use super::managed::WriteFailure;
use crate::failure::Failure;
use crate::host::{Command, End, Finished, Host};
use crate::permit::Permit;
use crate::secrets::secret_text::Secret;

/// The longest name of a user or group.
const LONGEST_NAME: usize = 32;

/// Returns the reason if the tools would not accept the name of a user or group.
pub(crate) fn name_problem(name: &str) -> Option<&'static str> {
    let is_odd =
        |letter: char| letter.is_whitespace() || letter.is_control() || ":,/\\\"'".contains(letter);
    match name {
        "" | "." | ".." => Some("expected a name, found none"),
        _ if name.len() > LONGEST_NAME => Some("expected a name of at most 32 bytes"),
        _ if name.starts_with(['-', '+', '~', '!']) => {
            Some("a name must not start with - + ~ or !")
        }
        _ if name.contains(is_odd) => {
            Some("a name has no spaces, colons, commas, slashes or quotes")
        }
        _ if name.bytes().all(|byte| byte.is_ascii_digit()) => {
            Some("a name must not be a number, which would be taken for an id")
        }
        _ => None,
    }
}

/// Runs an account tool while no other run of this process changes accounts.
///
/// # Errors
///
/// Fails if the tool cannot be started or does not end with code 0. The failure explains locks, missing rights and
/// read-only file systems.
pub(crate) async fn run_tool(
    host: &Host,
    permit: &Permit,
    argv: Vec<String>,
    input: Option<Secret>,
) -> Result<(), WriteFailure> {
    let command = Command {
        argv,
        stdin: input,
        // The messages are read by this program.
        env: vec![("LC_ALL".to_owned(), "C".into())],
        timeout: Some(TIMEOUT),
        ..Command::default()
    };
    let cancelled =
        || WriteFailure::untouched(Failure::new("the run was cancelled before this step"));
    let _turn = tokio::select! {
        biased;
        () = permit.revoked() => return Err(cancelled()),
        turn = host.change_accounts() => turn,
    };
    host.wait_for_whole_accounts().await.map_err(WriteFailure::untouched)?;
    let finished = host.run(&command, permit).await.map_err(WriteFailure::untouched)?;
    match finished.end {
        End::Exited(0) => Ok(()),
        End::Cancelled { started: false } => Err(cancelled()),
        _ => Err(explained(&command, &finished)),
    }
}

/// Describes the failure of a tool.
fn explained(command: &Command, finished: &Finished) -> WriteFailure {
    let program = command.argv.first().map_or("", String::as_str);
    let said = format!("{}\n{}", finished.stderr.text(), finished.stdout.text());
    let has = |words: &str| said.contains(words);
    let plain = failed(command, finished);
    let renamed = |first: String| {
        let rest = plain.what.split_once('\n').map_or("", |(_, rest)| rest);
        Failure::new(format!("{}\n{rest}", bounded(first)).trim_end().to_owned())
    };
    // Later failures of this kind, for example of a home directory, come after a change of the account files.
    let is_first = matches!(finished.end, End::Exited(1 | 10));
    let touched = !(is_first || has("cannot lock") || has("cannot open"));
    if has("Read-only file system") || (has("cannot lock") && Host::has_read_only_accounts()) {
        let failure =
            renamed(format!("{program} cannot write the account files: read-only file system"));
        let hint = "make /etc writable: `findmnt -T /etc` shows its mount";
        return WriteFailure { failure: failure.hint(hint).passing(), touched };
    }
    if has("Permission denied") || has("permission denied") {
        let failure = renamed(format!("{program} has no right to change the account files"));
        let failure = failure.hint("steadfast must run as root to change accounts");
        return WriteFailure { failure, touched };
    }
    if let Some(lock) = stale_lock(&said) {
        let failure = renamed(format!("{program} found the lock file {lock} of a crashed program"));
        let hint = format!(
            "a crash left {lock} empty, and no program removes it: make sure that no program changes accounts \
             (`pgrep -a 'user|group|passwd'`), and then run `rm {lock}`"
        );
        return WriteFailure::untouched(failure.hint(hint).passing());
    }
    if has("cannot lock") || has("try again later") {
        let failure = renamed(format!("{program} waited for the lock of the account files"));
        let hint = "another program changes accounts and holds /etc/.pwd.lock; the run is repeated";
        return WriteFailure::untouched(failure.hint(hint).passing());
    }
    if has("currently used by process") || has("is currently logged in") {
        let failure = renamed(format!("{program} does not change a user with running processes"));
        let hint = "end the processes: `loginctl terminate-user NAME`, or `pkill -u NAME`";
        return WriteFailure::untouched(failure.hint(hint).passing());
    }
    if has("No space left") {
        return WriteFailure::touched(
            plain.hint("free space on the file system of /etc").passing(),
        );
    }
    // Code 2: wrong usage; 3: wrong argument; 4: id in use; 6: no such account; 9: name in use. The tools examine all
    // of this before they write.
    let is_examined = program != "chpasswd" && program != "gpasswd";
    match finished.end {
        End::Exited(2 | 3 | 4 | 6 | 9) if is_examined => WriteFailure::untouched(plain),
        _ => WriteFailure::touched(plain),
    }
}

/// Returns the path of a lock file without the number of a process. The tools never take such a lock over: a crash, or
/// a full disk, left the file behind before the number was in it.
fn stale_lock(said: &str) -> Option<&str> {
    let mut lines = said.lines().filter(|line| line.contains("existing lock file"));
    let line = lines.find(|line| line.contains("without a PID") || line.contains("invalid PID"))?;
    line.split_whitespace()
        .find(|word| word.starts_with('/') && word.strip_suffix(".lock").is_some())
}

/// Collects the words of a command line.
pub(crate) fn words(all: &[&str]) -> Vec<String> {
    all.iter().map(|word| (*word).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::{WriteFailure, explained, name_problem};
    use crate::host::{Captured, Command, End, Finished};

    /// A tool that has no right to a home directory has changed the account files before.
    #[test]
    fn only_the_first_step_of_a_tool_changes_nothing() {
        for (code, said, touched) in [
            (1, "useradd: Permission denied.", false),
            (10, "cannot lock /etc/group", false),
            (12, "cannot open /etc/passwd: Permission denied", false),
            (12, "useradd: cannot create directory /home/eve: Permission denied", true),
            (12, "useradd: cannot create directory /home/eve: Read-only file system", true),
        ] {
            let mut stderr = Captured::default();
            stderr.push(said.as_bytes());
            let (end, stdout) = (End::Exited(code), Captured::default());
            let finished = Finished { end, stdout, stderr, held: false };
            let command = Command { argv: vec!["useradd".to_owned()], ..Command::default() };
            assert_eq!(explained(&command, &finished).touched, touched, "{code} {said}");
        }
    }

    /// A lock file that a crash left empty is named: the tools wait for it for ever.
    #[test]
    fn an_empty_lock_file_is_named() {
        let free = "useradd: existing lock file /etc/passwd.lock without a PID\n\
                    useradd: cannot lock /etc/passwd; try again later.\n";
        let failure = failure_of("useradd", free);
        assert!(!failure.touched && failure.failure.what.contains("/etc/passwd.lock"));
        let hint = failure.failure.hint.as_deref().unwrap_or_default().to_owned();
        assert!(hint.contains("a crash left") && hint.contains("rm /etc/passwd.lock"), "{hint}");
        for table in ["group", "shadow", "gshadow", "subuid", "subgid"] {
            let hint = failure_of("groupadd", &free.replace("passwd", table)).failure.hint;
            assert!(hint.is_some_and(|hint| hint.contains(&format!("rm /etc/{table}.lock"))));
        }
        let held = "useradd: existing lock file /etc/passwd.lock with PID '17'\n\
                    useradd: cannot lock /etc/passwd; try again later.\n";
        let hint = failure_of("useradd", held).failure.hint;
        assert!(hint.is_some_and(|hint| hint.contains("holds /etc/.pwd.lock")));
    }

    fn failure_of(program: &str, said: &str) -> WriteFailure {
        let mut stderr = Captured::default();
        stderr.push(said.as_bytes());
        let (end, stdout) = (End::Exited(1), Captured::default());
        let finished = Finished { end, stdout, stderr, held: false };
        let command = Command { argv: vec![program.to_owned()], ..Command::default() };
        explained(&command, &finished)
    }

    #[test]
    fn only_names_that_the_tools_accept_are_accepted() {
        for name in ["eve", "www-data", "_apt", "systemd-network", "a.b", "Domain$", "3com", "grün"]
        {
            assert_eq!(name_problem(name), None, "{name}");
        }
        let long = "x".repeat(33);
        for name in
            ["", "..", "-r", "+", "~x", "a b", "a:b", "a,b", "a/b", "0", "12", "a\nb", &long]
        {
            let problem = name_problem(name).expect("a problem");
            assert!(problem.len() <= 100, "{name}");
        }
    }
}
