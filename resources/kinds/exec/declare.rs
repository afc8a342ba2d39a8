//! Reads the fields of an exec and reports every problem at once.

use super::guards::Guards;
use super::{Exec, argv};
use crate::fields::field_values::MaybeSecret;
use crate::fields::field_values::{Fields, Invalid, Place};
use crate::host::Command;
use crate::kind::LONGEST_SPAN;
use crate::resource::{OnInterrupt, Resource};
use crate::secrets::escape::short;
use crate::secrets::secret_text::Secret;
use crate::watch_source::WatchSource;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub(super) fn build(
    name: &str,
    fields: Fields,
    _place: &Place,
) -> Result<Arc<dyn Resource>, Vec<Invalid>> {
    let mut reader = Reader { fields, problems: Vec::new(), warnings: Vec::new() };
    let exec = reader.exec(name);
    if reader.problems.is_empty() { Ok(Arc::new(exec)) } else { Err(reader.problems) }
}

struct Reader {
    fields: Fields,
    problems: Vec<Invalid>,
    warnings: Vec<Invalid>,
}

impl Reader {
    fn exec(&mut self, name: &str) -> Exec {
        let secret = self.fields.holds_secret();
        let common = self.common();
        let shell = self.shell("shell");
        let command = self.command(name, shell.as_deref(), &common);
        let guards = self.guards(&common);
        let done = self.side(["donecmd", "doneshell", "donecwd"], &common);
        let watch = self.watch(&common, &guards);
        let changed_when = self.given("changed_when").map(|text| Command {
            argv: self.cut("changed_when", &text, shell.as_deref()),
            ..common.clone()
        });
        if let Some(command) = &changed_when {
            self.vector("changed_when", &command.argv);
        }
        let exec = Exec {
            command,
            guards,
            done,
            changed_when,
            watch,
            returns: self.returns(),
            refresh_only: self.fields.bool("refresh_only").unwrap_or_default(),
            always: self.fields.bool("always").unwrap_or_default(),
            on_interrupt: self.on_interrupt(),
            secret,
            printed: Mutex::default(),
            warnings: Vec::new(),
        };
        self.contradictions(&exec);
        Exec { warnings: std::mem::take(&mut self.warnings), ..exec }
    }

    fn wrong(&mut self, field: &'static str, what: impl Into<String>, hint: &str) {
        self.problems.push(Invalid::field(field, what).hint(hint));
    }

    /// Takes a text with content; graphs of mgmt write `''` for an absent value.
    fn given(&mut self, field: &'static str) -> Option<String> {
        self.fields.text(field).filter(|text| !text.trim().is_empty())
    }

    fn common(&mut self) -> Command {
        Command {
            argv: Vec::new(),
            cwd: self.directory("cwd"),
            env: self.environment(),
            user: self.given("user"),
            group: self.given("group"),
            stdin: None,
            umask: self.umask(),
            timeout: self.timeout(),
            no_new_privs: self.fields.bool("no_new_privs").unwrap_or_default(),
            max_tasks: self.max_tasks(),
            judged: false,
        }
    }

    fn command(&mut self, name: &str, shell: Option<&str>, common: &Command) -> Command {
        let cmd = self.given("cmd");
        let more = self.fields.texts("args").unwrap_or_default();
        let text = cmd.as_deref().unwrap_or(name);
        let argv = match shell {
            Some(_) => {
                let mut argv = argv::vector(text, shell);
                if !more.is_empty() {
                    // The arguments after the script are $0, $1 and so on.
                    argv.extend(shell.map(str::to_owned));
                    argv.extend(more);
                }
                argv
            }
            None if more.is_empty() => self.cut("cmd", text, None),
            None => {
                if text.split_whitespace().count() > 1 && cmd.is_some() {
                    let hint = "omit `cmd` and put every word into `args`";
                    self.wrong("cmd", "expected one word beside `args`, found several", hint);
                }
                cmd.iter().map(|program| program.trim().to_owned()).chain(more).collect()
            }
        };
        self.vector("cmd", &argv);
        let stdin = match self.fields.words("stdin") {
            Some(MaybeSecret::Shown(text)) => Some(text.into()),
            Some(MaybeSecret::Secret(secret)) => Some(secret),
            Some(MaybeSecret::Sealed(_)) | None => None,
        };
        Command { argv, stdin, ..common.clone() }
    }

    /// Reads a command besides the main one: its text, shell and directory.
    fn side(&mut self, names: [&'static str; 3], common: &Command) -> Option<Command> {
        let [cmd, shell, cwd] = names;
        let (shell, cwd) = (self.shell(shell), self.directory(cwd));
        let text = self.given(cmd)?;
        let argv = self.cut(cmd, &text, shell.as_deref());
        self.vector(cmd, &argv);
        Some(Command { argv, cwd: cwd.or_else(|| common.cwd.clone()), ..common.clone() })
    }

    fn guards(&mut self, common: &Command) -> Guards {
        let guards = Guards {
            creates: self.given("creates").and_then(|path| self.absolute("creates", &path)),
            mtimes: self.paths("mtimes"),
            only_if: self.side(["ifcmd", "ifshell", "ifcwd"], common),
            equals: self.fields.text("ifequals"),
            unless: self.side(["nifcmd", "nifshell", "nifcwd"], common),
        };
        if guards.equals.is_some() && guards.only_if.is_none() {
            self.wrong(
                "ifequals",
                "`ifequals` needs `ifcmd`",
                "declare the command with the compared output",
            );
        }
        if !guards.mtimes.is_empty() && guards.creates.is_none() {
            let hint =
                "set `creates` to the file to compare, or use `watchfiles` to run at each change";
            self.wrong("mtimes", "`mtimes` needs `creates`: newer than what?", hint);
        }
        guards
    }

    fn watch(&mut self, common: &Command, guards: &Guards) -> Vec<WatchSource> {
        let mut sources: Vec<WatchSource> = Vec::new();
        if let Some(command) = self.side(["watchcmd", "watchshell", "watchcwd"], common) {
            sources.push(WatchSource::Lines(Command { timeout: None, ..command }));
        }
        let files = self.paths("watchfiles");
        let paths = files.iter().chain(&guards.mtimes).chain(&guards.creates);
        for path in paths {
            let below = path.as_os_str().as_encoded_bytes().ends_with(b"/");
            let source = WatchSource::Path { path: path.clone(), below };
            if !sources.contains(&source) {
                sources.push(source);
            }
        }
        sources
    }

    fn shell(&mut self, field: &'static str) -> Option<String> {
        let shell = self.given(field)?;
        let shell = shell.trim();
        if shell.split_whitespace().count() > 1 {
            let hint = "the shell is called as SHELL -c TEXT; put options into the text: set -e; …";
            self.wrong(field, "expected a program, found several words", hint);
        } else if !shell.starts_with('/') {
            let what = format!("expected the absolute path of a shell, found {shell:?}");
            self.wrong(field, what, &format!("write {field}: /bin/sh"));
        }
        Some(shell.to_owned())
    }

    /// Returns the argument vector of a text; warns about shell syntax in a text without a shell.
    fn cut(&mut self, field: &'static str, text: &str, shell: Option<&str>) -> Vec<String> {
        if shell.is_none()
            && let Some(word) = argv::meant_for_a_shell(text)
        {
            let word = short(word, 30);
            let what = format!("`{field}` is not run by a shell: `{word}` is passed literally");
            let hint = if field == "cmd" {
                "add `shell: /bin/sh`, or put the words into `args`"
            } else {
                "set the shell that runs the text"
            };
            self.warnings.push(Invalid::field(field, what).hint(hint));
        }
        argv::vector(text, shell)
    }

    fn vector(&mut self, field: &'static str, argv: &[String]) {
        if argv.first().is_none_or(String::is_empty) {
            self.wrong(field, "expected a program, found nothing", "name one");
        }
        if argv.iter().any(|word| word.contains('\0')) {
            self.wrong(
                field,
                "a word of a command cannot contain a NUL byte",
                "use `stdin` or a file",
            );
        }
    }

    fn environment(&mut self) -> Vec<(String, Secret)> {
        let variables = self.fields.secret_map("env");
        for (name, value) in &variables {
            let is_start = |byte: u8| byte.is_ascii_alphabetic() || byte == b'_';
            let is_name = name.bytes().next().is_some_and(is_start)
                && name.bytes().all(|byte| is_start(byte) || byte.is_ascii_digit());
            if !is_name {
                // The part after `=` is a value in the wrong place, and may be a secret.
                let shown = name.split('=').next().unwrap_or_default();
                let what = format!("expected the name of a variable, found {:?}", short(shown, 30));
                self.wrong("env", what, "letters, digits and _, not starting with a digit");
            } else if value.reveal().contains('\0') {
                let what = format!("the value of {name} contains a NUL byte");
                self.wrong(
                    "env",
                    what,
                    "a variable cannot contain a NUL byte: use `stdin` or a file",
                );
            }
        }
        variables
    }

    fn directory(&mut self, field: &'static str) -> Option<PathBuf> {
        let path = self.given(field)?;
        self.absolute(field, &path)
    }

    fn paths(&mut self, field: &'static str) -> Vec<PathBuf> {
        let texts = self.fields.texts(field).unwrap_or_default();
        texts.iter().filter_map(|text| self.absolute(field, text)).collect()
    }

    fn absolute(&mut self, field: &'static str, text: &str) -> Option<PathBuf> {
        if Path::new(text).is_absolute() && !text.contains('\0') {
            return Some(PathBuf::from(text));
        }
        let what = format!("expected an absolute path, found {text:?}");
        self.wrong(field, what, "start the path with /");
        None
    }

    fn umask(&mut self) -> Option<u32> {
        let text = self.given("umask")?;
        let digits = text.strip_prefix("0o").unwrap_or(&text);
        match u32::from_str_radix(digits, 8) {
            Ok(umask) if umask <= 0o777 => Some(umask),
            _ => {
                let what = format!("expected an octal umask, found {text:?}");
                self.wrong("umask", what, "for example 027");
                None
            }
        }
    }

    fn timeout(&mut self) -> Option<Duration> {
        let seconds = self.fields.float("timeout")?;
        match Duration::try_from_secs_f64(seconds) {
            Ok(Duration::ZERO) => None,
            Ok(timeout) if timeout <= LONGEST_SPAN => Some(timeout),
            _ => {
                let what = format!("expected seconds, found {seconds}");
                let most = LONGEST_SPAN.as_secs();
                self.wrong("timeout", what, &format!("0 means no limit; at most {most} (a year)"));
                None
            }
        }
    }

    fn max_tasks(&mut self) -> Option<u32> {
        /// The largest number of tasks that the kernel can count.
        const MOST: u32 = 1 << 22;
        let tasks = self.fields.int("max_tasks")?;
        match u32::try_from(tasks) {
            Ok(tasks) if (1..=MOST).contains(&tasks) => Some(tasks),
            _ => {
                let what = format!("expected a number of tasks, found {tasks}");
                self.wrong("max_tasks", what, &format!("from 1 to {MOST}"));
                None
            }
        }
    }

    fn returns(&mut self) -> Vec<i32> {
        let Some(texts) = self.fields.texts("returns") else { return vec![0] };
        if texts.is_empty() {
            self.wrong("returns", "expected at least one exit code", "omit the field for [0]");
        }
        let mut codes = Vec::new();
        for text in texts {
            if let Ok(code) = text.parse::<u8>() {
                codes.push(code.into());
            } else {
                let what = format!("expected an exit code, found {text:?}");
                self.wrong("returns", what, "a number from 0 to 255");
            }
        }
        codes
    }

    fn on_interrupt(&mut self) -> OnInterrupt {
        match self.given("on_interrupt").as_deref() {
            None | Some("rerun") => OnInterrupt::Again,
            Some("skip") => OnInterrupt::Skip,
            Some("ask") => OnInterrupt::Wait,
            Some(other) => {
                let what = format!("expected rerun, skip or ask, found {other:?}");
                self.wrong(
                    "on_interrupt",
                    what,
                    "the field sets the reaction to an interrupted run",
                );
                OnInterrupt::Again
            }
        }
    }

    fn contradictions(&mut self, exec: &Exec) {
        let command = &exec.command;
        if command.max_tasks.is_some() && command.user.is_none() && command.group.is_none() {
            let hint = "declare `user`, or omit `max_tasks`: the daemon's own user has no limit";
            self.wrong("max_tasks", "`max_tasks` has no effect without `user`", hint);
        }
        if exec.always && !exec.guards.is_empty() {
            let hint = "omit `always`: a guard is checked at each start anyway";
            self.wrong("always", "`always` has no effect beside a guard", hint);
        }
        if exec.always && exec.refresh_only {
            let hint = "omit one of the two fields";
            self.wrong("always", "`always` contradicts `refresh_only`", hint);
        }
    }
}
