//! The harness: a simulated host with a kernel's tables, with commands that change them, and with a recorder of
//! former values.

use futures_util::FutureExt as _;
use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::{Arc, Mutex, OnceLock};
use steadfast_resources::host::simulated::{Machine, Running, here};
use steadfast_resources::host::{Captured, Command, End, Finished};
use steadfast_resources::{
    Change, CheckRequest, CheckResult, Failure, FieldType, FieldValues, Fields, FormerValue, Host,
    Invalid, KindSet, Loss, MintKey, Outcome, Permit, Place, PriorState, PriorStateRecorder,
    Resource, Value,
};
use tokio_util::sync::CancellationToken;

/// The mounts of a fresh host.
const MOUNTS: &str = "22 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw\n";

/// The titles of the table of swap space.
pub(crate) const SWAPS: &str = "Filename\tType\tSize\tUsed\tPriority\n";

/// A simulated host with the called commands.
pub(crate) struct SimulatedHost {
    pub(crate) machine: Machine,
    pub(crate) called: Rc<RefCell<Vec<String>>>,
    pub(crate) values: Arc<Recorded>,
}

impl SimulatedHost {
    /// Makes a host with the tables of a kernel, an fstab of foreign lines, and the folders of the kinds.
    pub(crate) fn new() -> Self {
        let machine = Machine::default();
        for folder in [
            "/etc/cron.d",
            "/etc/sysctl.d",
            "/etc/modprobe.d",
            "/etc/modules-load.d",
            "/proc/self",
            "/proc/sys/net/ipv4",
            "/proc/sys/kernel",
            "/lib/modules/6.1",
            "/srv/data",
            "/srv/source",
            "/dev",
        ] {
            machine.make_directories(folder).unwrap();
        }
        for (path, text) in [
            ("/etc/fstab", FSTAB),
            ("/proc/self/mountinfo", MOUNTS),
            ("/proc/swaps", SWAPS),
            ("/proc/modules", "ext4 1 1 - Live 0x0\n"),
            ("/proc/sys/kernel/osrelease", "6.1\n"),
            ("/proc/sys/net/ipv4/ip_forward", "0\n"),
            ("/proc/sys/net/ipv4/tcp_mem", "1\t2\t3\n"),
            ("/lib/modules/6.1/modules.builtin", "kernel/fs/binfmt-misc.ko\n"),
        ] {
            machine.write(path, text).unwrap();
        }
        let called = Rc::new(RefCell::new(Vec::new()));
        let calls = Rc::clone(&called);
        machine.set_runner(move |command: &Command, _stop| -> Running {
            calls.borrow_mut().push(command.argv.join(" "));
            let argv: Vec<&str> = command.argv.iter().map(String::as_str).collect();
            let result = here().unwrap().foreign(|machine| run(machine, &argv));
            Box::pin(std::future::ready(Ok(finished(result))))
        });
        Self { machine, called, values: Arc::default() }
    }

    /// Returns the commands since the last call.
    pub(crate) fn calls(&self) -> Vec<String> {
        std::mem::take(&mut self.called.borrow_mut())
    }

    pub(crate) fn text(&self, path: &str) -> String {
        String::from_utf8(self.machine.content(path).unwrap_or_default()).unwrap()
    }

    /// Checks a resource.
    pub(crate) fn check(&self, resource: &Arc<dyn Resource>) -> CheckResult {
        self.check_with(resource, CheckRequest::default())
    }

    pub(crate) fn check_with(
        &self,
        resource: &Arc<dyn Resource>,
        ask: CheckRequest,
    ) -> CheckResult {
        let _entered = self.machine.enter();
        let host = Host::default();
        resource.check(&host, ask).now_or_never().expect("a simulated host never waits")
    }

    /// Applies a change.
    pub(crate) fn apply(&self, resource: &Arc<dyn Resource>, change: Change) -> Outcome {
        let _entered = self.machine.enter();
        let keeper = Arc::clone(&self.values) as Arc<dyn PriorStateRecorder>;
        let permit = permit().kept_by(Some(keeper));
        let host = Host::default();
        resource.apply(&host, &permit, change).now_or_never().expect("a simulated host never waits")
    }

    /// Checks, and applies a difference.
    pub(crate) fn hold(&self, resource: &Arc<dyn Resource>) -> Outcome {
        match self.check(resource) {
            CheckResult::Same => Outcome::Unchanged,
            CheckResult::Differs(change) => self.apply(resource, change),
            CheckResult::Unknown(trouble) => Outcome::Failed { trouble, touched: false },
        }
    }

    /// Applies a resource, which must change something and then be as declared. The check alone changes nothing.
    pub(crate) fn makes(&self, resource: &Arc<dyn Resource>) -> Vec<String> {
        self.machine.take_changes();
        let called = self.called.borrow().len();
        let change = match self.check(resource) {
            CheckResult::Differs(change) => change,
            other => panic!("expected a difference, found {other:?}"),
        };
        assert_eq!(self.machine.take_changes(), [], "a check changes nothing");
        assert_eq!(self.called.borrow().len(), called, "a check calls nothing");
        match self.apply(resource, change) {
            Outcome::Changed(done) => {
                assert!(matches!(self.check(resource), CheckResult::Same), "after {done:?}");
                done
            }
            other => panic!("expected a change, found {other:?}"),
        }
    }

    /// Applies a resource, which must fail, and returns the message.
    pub(crate) fn fails(&self, resource: &Arc<dyn Resource>) -> (String, bool) {
        match self.hold(resource) {
            Outcome::Failed { trouble, touched } => {
                assert!(trouble.what.lines().next().unwrap().chars().count() <= 100, "{trouble}");
                (trouble.what, touched)
            }
            other => panic!("expected a failure, found {other:?}"),
        }
    }

    /// Builds and applies the removal of a resource.
    pub(crate) fn removes(&self, kind: &str, name: &str, resource: &Arc<dyn Resource>) {
        let removal = resource.footprint().removal.expect("a removal");
        let spec = KindSet::of_this_build().find(kind).unwrap();
        let removing = removal.build(spec, name).unwrap();
        assert!(removing.footprint().removal.is_none(), "a removal has no removal");
        // Stored removal data are read in the order of the kind's fields.
        let place = |field: &str| spec.fields.iter().position(|known| known.name == field);
        assert!(removal.fields().iter().map(|(field, _)| place(field)).is_sorted(), "{removal:?}");
        self.makes(&removing);
    }

    /// Restores the values from before the last change of a resource, and returns the command with the same effect.
    pub(crate) fn undoes(&self, kind: &str, name: &str) -> String {
        let values = self.values.take();
        let restoring =
            KindSet::of_this_build().restoring(&format!("{kind}[{name}]"), &values).unwrap();
        self.makes(&restoring.resource);
        restoring.by_hand
    }
}

/// The foreign lines of a host's fstab.
pub(crate) const FSTAB: &str = "# foreign\n\nUUID=1 / ext4  errors=remount-ro 0 1\nbroken";

pub(crate) fn permit() -> Permit {
    static KEY: OnceLock<MintKey> = OnceLock::new();
    KEY.get_or_init(|| MintKey::take().expect("the first who asks")).mint(CancellationToken::new())
}

/// Builds a resource, or returns all problems. Lists are given as lines.
pub(crate) fn build(
    kind: &str,
    name: &str,
    given: &[(&str, &str)],
) -> Result<Arc<dyn Resource>, Vec<Invalid>> {
    let spec = KindSet::of_this_build().find(kind).expect("a kind of this build");
    let mut fields = Fields::default();
    for (key, text) in given {
        let field = spec.fields.iter().find(|field| field.name == *key).expect("a field");
        let value = match field.takes {
            FieldType::Bool => Value::Bool(*text == "true"),
            FieldType::Int => Value::Int(text.parse().unwrap()),
            FieldType::Texts => Value::Texts(text.lines().map(str::to_owned).collect()),
            FieldType::TextMap => Value::TextMap(
                text.lines()
                    .map(|line| line.split_once('=').unwrap())
                    .map(|(name, value)| (name.to_owned(), value.to_owned()))
                    .collect(),
            ),
            _ => Value::Text((*text).to_owned()),
        };
        fields.insert(field.name, value);
    }
    spec.build_resource(name, fields, &Place { base: PathBuf::from("/") })
}

/// Builds a resource that must be valid.
pub(crate) fn valid(kind: &str, name: &str, given: &[(&str, &str)]) -> Arc<dyn Resource> {
    build(kind, name, given).unwrap_or_else(|wrong| panic!("{kind}[{name}]: {wrong:?}"))
}

/// Asserts that the fields are rejected with one problem about this field, or about the name.
pub(crate) fn rejected(kind: &str, name: &str, given: &[(&str, &str)], field: Option<&str>) {
    let problems = build(kind, name, given).expect_err(&format!("{name} {given:?}"));
    assert!(problems.iter().any(|it| it.field == field), "{name} {given:?}: {problems:?}");
    for problem in problems {
        assert!(problem.what.chars().count() <= 100, "{problem:?}");
    }
}

/// The recorded values of changes.
#[derive(Debug, Default)]
pub(crate) struct Recorded(Mutex<Vec<FormerValue>>);

impl Recorded {
    fn take(&self) -> Vec<FormerValue> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

impl PriorStateRecorder for Recorded {
    fn largest(&self) -> u64 {
        1 << 20
    }

    fn keep(
        &self,
        _path: &std::path::Path,
        _former: PriorState,
        _losing: Loss<'_>,
    ) -> Result<u64, Failure> {
        Ok(1)
    }

    fn settle(&self, _number: u64, _made: bool) {}

    fn keep_values(&self, before: FieldValues) -> u64 {
        let former = |(field, before): (&'static str, Option<String>)| FormerValue {
            field: field.to_owned(),
            before,
            after: steadfast_resources::After::Unknown,
        };
        *self.0.lock().unwrap() = before.into_iter().map(former).collect();
        1
    }

    fn settle_values(&self, _number: u64, after: FieldValues) {
        let mut values = self.0.lock().unwrap();
        for (field, value) in after {
            if let Some(known) = values.iter_mut().find(|known| known.field == field) {
                known.after = value.into();
            }
        }
    }
}

fn finished(result: Result<(), &'static str>) -> Finished {
    let mut stderr = Captured::default();
    stderr.push(result.err().unwrap_or_default().as_bytes());
    let end = End::Exited(i32::from(result.is_err()));
    Finished { end, stdout: Captured::default(), stderr, held: false }
}

/// Runs a command as another process of the simulated host.
fn run(machine: &Machine, argv: &[&str]) -> Result<(), &'static str> {
    match argv {
        ["mount", "-o", options, point] => {
            remount(machine, options, point);
            Ok(())
        }
        ["mount", "-t", kind, "-o", options, device, point] => {
            mount(machine, (kind, options), device, point)
        }
        ["mount", "-o", options, device, point] => mount(machine, ("ext4", options), device, point),
        ["umount", point] => {
            let table = read(machine, "/proc/self/mountinfo");
            let lines: Vec<&str> = table.lines().collect();
            let own = lines.iter().rposition(|line| line.split(' ').nth(4) == Some(point));
            let own = own.ok_or("umount: not mounted.")?;
            let kept = lines.iter().enumerate().filter(|(at, _)| *at != own);
            let text: String = kept.flat_map(|(_, line)| [line, "\n"]).collect();
            machine.write("/proc/self/mountinfo", text).unwrap();
            Ok(())
        }
        ["swapon", rest @ .., device] => {
            let priority = match rest {
                ["-p", priority, ..] => priority,
                _ => "-2",
            };
            let is_swap = machine.content(device).is_some_and(|it| it.starts_with(b"SWAP"));
            let text = read(machine, "/proc/swaps") + &format!("{device} file 1 0 {priority}\n");
            is_swap.then(|| machine.write("/proc/swaps", text).unwrap()).ok_or("swapon: no header")
        }
        ["swapoff", device] => {
            let table = read(machine, "/proc/swaps");
            let kept = table.lines().filter(|line| !line.starts_with(device));
            let text: String = kept.flat_map(|line| [line, "\n"]).collect();
            machine.write("/proc/swaps", text).unwrap();
            Ok(())
        }
        ["rm", "-f", path] => machine.remove(path).map_err(|_errno| "rm"),
        ["fallocate", "-l", _, path] => {
            machine.write(path, "zeros").map_err(|_errno| "no space left")
        }
        ["mkswap", path] => machine.write(path, "SWAP").map_err(|_errno| "mkswap"),
        ["mv", "-n", "-T", from, to] => machine.rename_over(from, to).map_err(|_errno| "mv"),
        ["modprobe", "-r", name] => {
            let table = read(machine, "/proc/modules");
            let kept = table.lines().filter(|line| line.split(' ').next() != Some(name));
            let text: String = kept.flat_map(|line| [line, "\n"]).collect();
            machine.write("/proc/modules", text).unwrap();
            Ok(())
        }
        ["modprobe", "missing"] => Err("modprobe: FATAL: Module missing not found."),
        ["modprobe", name] => {
            let text = read(machine, "/proc/modules") + &format!("{name} 1 0 - Live 0x0\n");
            machine.write("/proc/modules", text).unwrap();
            Ok(())
        }
        _ => Err("the simulated host does not know this command"),
    }
}

fn read(machine: &Machine, path: &str) -> String {
    String::from_utf8(machine.content(path).unwrap_or_default()).unwrap()
}

fn mount(
    machine: &Machine,
    (kind, options): (&str, &str),
    device: &str,
    point: &str,
) -> Result<(), &'static str> {
    let is_bind = options.split(',').any(|option| option == "bind");
    if device.starts_with("/dev/") && machine.content(device).is_none() {
        return Err("mount: special device does not exist.");
    }
    let (number, root, source) =
        if is_bind { ("8:1", device, "/dev/sda1") } else { ("0:40", "/", device) };
    let flags = flags(options);
    let line = format!("30 22 {number} {root} {point} {flags} - {kind} {source} rw\n");
    let text = read(machine, "/proc/self/mountinfo") + &line;
    machine.write("/proc/self/mountinfo", text).unwrap();
    Ok(())
}

fn remount(machine: &Machine, options: &str, point: &str) {
    let text = read(machine, "/proc/self/mountinfo");
    let lines = text.lines().map(|line| {
        let mut words: Vec<&str> = line.split(' ').collect();
        let flags = flags(options);
        if words[4] == point {
            words[5] = &flags;
        }
        words.join(" ") + "\n"
    });
    machine.write("/proc/self/mountinfo", lines.collect::<String>()).unwrap();
}

/// Returns the flags of a mount as the kernel shows them.
fn flags(options: &str) -> String {
    let mut flags = vec!["rw"];
    for option in options.split(',') {
        match option {
            "ro" => flags[0] = "ro",
            "rw" => flags[0] = "rw",
            "noexec" | "nosuid" | "nodev" | "noatime" => flags.push(option),
            _ => {}
        }
    }
    flags.join(",")
}
