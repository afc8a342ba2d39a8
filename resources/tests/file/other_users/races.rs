//! S-1: an unprivileged process swaps the file, its directory and the parent directory for links to a file of
//! root, while files are written, given away, changed in mode and removed there. The tests run as root.

use crate::support::*;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::Arc;
use std::time::{Duration, Instant};
use steadfast_resources::{Host, Outcome, Resource};

const NOBODY: u32 = 65534;

/// Swaps `home/g`, `home/g/p` and `home/g/p/f` for links to the canary and back, until the process is killed.
const RACER: &str = r#"
my ($home, $canary) = @ARGV;
chdir $home or die;
my $n = 0;
while (1) {
    $n++;
    my ($path, $target) = (["g", "$canary/g"], ["g/p", "$canary/g/p"], ["g/p/f", "$canary/g/p/f"])[$n % 3]->@*;
    rename $path, "$home/aside" or (-l $path and unlink $path);
    symlink $target, $path;
    select undef, undef, undef, 0.00001 if $n % 5 == 0;
    unlink $path if -l $path;
    rename "$home/aside", $path;
    if (!-d "g/p") { mkdir "g"; mkdir "g/p"; }
    if ($n % 50 == 0) { open my $f, ">", "g/p/f"; close $f; unlink "$home/aside"; }
}
"#;

struct Race {
    dir: tempfile::TempDir,
    racer: Child,
}

impl Race {
    fn start() -> Self {
        demand_root();
        let dir = scratch();
        let (home, canary) = (dir.path().join("home"), dir.path().join("canary"));
        fs::create_dir_all(home.join("g/p")).unwrap();
        fs::write(home.join("g/p/f"), "").unwrap();
        for path in ["", "g", "g/p", "g/p/f"] {
            chown(home.join(path), Some(NOBODY), Some(NOBODY)).unwrap();
        }
        fs::create_dir_all(canary.join("g/p")).unwrap();
        fs::write(canary.join("g/p/f"), "canary").unwrap();
        chmod(canary.join("g/p/f"), 0o600);
        let racer = Command::new("setpriv")
            .args(["--reuid=65534", "--regid=65534", "--clear-groups", "perl", "-e", RACER])
            .args([&home, &canary])
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        Self { dir, racer }
    }

    fn target(&self) -> PathBuf {
        self.dir.path().join("home/g/p/f")
    }

    fn canary(&self) -> Vec<String> {
        let root = self.dir.path().join("canary");
        ["", "g", "g/p", "g/p/f"].iter().map(|path| portrait(&root.join(path))).collect()
    }
}

impl Drop for Race {
    fn drop(&mut self) {
        self.racer.kill().unwrap();
        self.racer.wait().unwrap();
    }
}

/// Returns everything that a change could alter, including the change time.
fn portrait(path: &Path) -> String {
    let Ok(meta) = fs::symlink_metadata(path) else { return "gone".into() };
    let inside =
        if meta.is_dir() { names(path).join(" ") } else { fs::read_to_string(path).unwrap() };
    let times = (meta.ctime(), meta.ctime_nsec());
    format!("{inside}: {:o} {} {} {times:?}", meta.mode(), meta.uid(), meta.gid())
}

#[test]
fn a_racer_cannot_lead_us_to_a_file_of_roots() {
    let race = Race::start();
    let target = race.target();
    let slash = format!("{}/", target.display());
    let held: Vec<Arc<dyn Resource>> = vec![
        file(&target, &[("content", "a"), ("force", "true")]),
        file(&target, &[("mode", "0666")]),
        file(&target, &[("content", "b"), ("mode", "0604"), ("owner", "12"), ("group", "34")]),
        file(&target, &[("owner", "nobody"), ("state", "undefined")]),
        file(&target, &[("state", "absent"), ("force", "true")]),
        file(&slash, &[("mode", "0777"), ("owner", "nobody"), ("force", "true")]),
        file(&target, &[("symlink", "/nowhere"), ("force", "true")]),
        file(&target, &[("state", "undefined"), ("mode", "0777")]),
    ];
    run(&race, &held);
}

/// S-1: an attacker leads neither a managed tree (copied, purged, backed up) nor a validation to a file of
/// root.
#[test]
fn a_racer_cannot_lead_a_tree_to_a_file_of_roots() {
    let race = Race::start();
    let (source, kept) = (race.dir.path().join("source"), race.dir.path().join("kept"));
    fs::create_dir_all(source.join("p/deep")).unwrap();
    fs::write(source.join("p/f"), "ours").unwrap();
    fs::write(source.join("p/deep/x"), "ours").unwrap();
    fs::create_dir(&kept).unwrap();
    chmod(&kept, 0o700);
    let (source, kept) = (source.display().to_string(), kept.display().to_string());
    let top = format!("{}/home/g/", race.dir.path().display());
    let target = race.target();
    let held: Vec<Arc<dyn Resource>> = vec![
        file(&top, &[("source", &source), ("recurse", "true"), ("force", "true")]),
        file(&top, &[("recurse", "true"), ("mode", "a=rwX"), ("owner", "12")]),
        file(&top, &[("recurse", "true"), ("purge", "true"), ("backup", &kept)]),
        file(&top, &[("recurse", "true"), ("owner", "nobody"), ("mode", "u=rwX")]),
        file(format!("{top}p/"), &[("purge", "true"), ("force", "true")]),
        file(&target, &[("content", "x"), ("validate", "true %s"), ("force", "true")]),
        file(&target, &[("content", "y"), ("backup", &kept), ("force", "true")]),
    ];
    run(&race, &held);
    // No content from behind the attacker's links was ever read.
    for name in names(&kept) {
        let found = fs::read_to_string(Path::new(&kept).join(name)).unwrap();
        assert!(!found.contains("canary"), "a copy of root's file was kept");
    }
}

/// S-1: a walk alone, against a process that exchanges a directory for a link in one step, so that the
/// exchange often falls between the examination and the entry.
#[test]
fn a_racer_cannot_lead_a_walk_out_of_its_tree() {
    if let Ok(dir) = std::env::var("STEADFAST_TEST_RACER") {
        let (p, aside) = (Path::new(&dir).join("home/g/p"), Path::new(&dir).join("home/aside"));
        let flags = rustix::fs::RenameFlags::EXCHANGE;
        loop {
            rustix::fs::renameat_with(rustix::fs::CWD, &p, rustix::fs::CWD, &aside, flags).unwrap();
        }
    }
    let mut race = Race::start();
    race.racer.kill().unwrap();
    race.racer.wait().unwrap();
    let home = race.dir.path().join("home");
    fs::remove_dir_all(&home).unwrap();
    fs::create_dir_all(home.join("g/p")).unwrap();
    fs::write(home.join("g/p/f"), "theirs").unwrap();
    symlink(race.dir.path().join("canary/g/p"), home.join("aside")).unwrap();
    for path in ["", "g", "g/p", "g/p/f"] {
        chown(home.join(path), Some(NOBODY), Some(NOBODY)).unwrap();
    }
    let before = race.canary();
    // The user nobody may have no access to the build directory.
    let program = race.dir.path().join("program");
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    race.racer = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(&program)
        .args(["--exact", "other_users::races::a_racer_cannot_lead_a_walk_out_of_its_tree"])
        .env("STEADFAST_TEST_RACER", race.dir.path())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let host = Host::default();
    let held =
        file(format!("{}/", home.join("g").display()), &[("recurse", "true"), ("mode", "a=rwX")]);
    let (mut well, mut rounds) = (0, 0);
    let begun = Instant::now();
    while !is_over(begun, Duration::from_secs(5), well > 100) {
        well += usize::from(!matches!(hold(&host, &held), Outcome::Failed { .. }));
        rounds += 1;
    }
    assert_eq!(race.canary(), before, "after {rounds} rounds");
    assert!(well > 100, "of {rounds} rounds only {well} went to their end");
}

/// S-1: a source in a user's directory is read, and never a file of root through that directory.
#[test]
fn a_racer_cannot_make_us_copy_a_file_of_roots() {
    let race = Race::start();
    let before = race.canary();
    let host = Host::default();
    let (source, tree) = (race.target(), race.dir.path().join("home/g"));
    let (one, all) = (race.dir.path().join("one"), race.dir.path().join("all"));
    // Without the source's owner as the owner of the copy, no copy is made (S-11).
    let theirs = ("owner", "65534");
    let held = [
        file(&one, &[("source", source.to_str().unwrap()), ("force", "true"), theirs]),
        file(&one, &[("fragments", source.parent().unwrap().to_str().unwrap()), theirs]),
        file(
            format!("{}/", all.display()),
            &[("source", tree.to_str().unwrap()), ("recurse", "true"), ("force", "true"), theirs],
        ),
    ];
    let (mut copied, mut rounds) = (0, 0);
    let begun = Instant::now();
    while !is_over(begun, Duration::from_secs(6), copied > 50) {
        copied += usize::from(matches!(hold(&host, &held[rounds % 3]), Outcome::Changed(_)));
        rounds += 1;
        for path in [&one, &all.join("p/f")] {
            // A link is copied as a link, so its target was not copied.
            let is_file = fs::symlink_metadata(path).is_ok_and(|meta| meta.is_file())
                && fs::canonicalize(path).is_ok_and(|real| real == *path);
            let found = if is_file { fs::read_to_string(path).unwrap() } else { String::new() };
            assert!(!found.contains("canary"), "{} after {rounds} rounds", path.display());
        }
        drop(fs::remove_file(&one));
    }
    assert_eq!(race.canary(), before);
    assert!(copied > 50, "of {rounds} rounds only {copied} copied anything");
}

/// Returns true if a race has lasted long enough. A machine with other work gets more time until the race met enough.
fn is_over(begun: Instant, least: Duration, enough: bool) -> bool {
    begun.elapsed() >= if enough { least } else { Duration::from_mins(2) }
}

/// Applies the resources in turn during the race.
fn run(race: &Race, held: &[Arc<dyn Resource>]) {
    let before = race.canary();
    let host = Host::default();
    let (mut changed, mut refused, mut rounds) = (0, 0, 0);
    let begun = Instant::now();
    let least = Duration::from_secs(8);
    while !is_over(begun, least, changed > 100 && refused > 100) && rounds < 100_000 {
        match hold(&host, &held[rounds % held.len()]) {
            Outcome::Changed(_) => changed += 1,
            Outcome::Failed { .. } => refused += 1,
            Outcome::Unchanged | Outcome::Interrupted => {}
        }
        rounds += 1;
    }
    assert_eq!(race.canary(), before, "after {rounds} rounds");
    assert!(changed > 100, "of {rounds} rounds only {changed} changed anything");
    assert!(refused > 100, "of {rounds} rounds only {refused} met a swap");
}

/// The race is real: a writer that works on paths loses it.
#[test]
fn a_naive_writer_loses_the_same_race() {
    let race = Race::start();
    let before = race.canary();
    let begun = Instant::now();
    while race.canary() == before {
        assert!(begun.elapsed() < Duration::from_mins(1), "the racer never won");
        let target = race.target();
        if fs::symlink_metadata(&target).is_ok_and(|meta| meta.uid() == NOBODY) {
            drop(fs::set_permissions(&target, std::os::unix::fs::PermissionsExt::from_mode(0o604)));
        }
    }
}

/// A file of root behind the attacker's own link, without a race: the rejection names the link.
#[test]
fn a_standing_link_of_the_racer_is_refused_by_name() {
    let mut race = Race::start();
    race.racer.kill().unwrap();
    race.racer.wait().unwrap();
    let home = race.dir.path().join("home");
    fs::remove_dir_all(&home).unwrap();
    fs::create_dir(&home).unwrap();
    symlink(race.dir.path().join("canary/g"), home.join("g")).unwrap();
    chown(&home, Some(NOBODY), Some(NOBODY)).unwrap();
    let words = refused(&Host::default(), &file(race.target(), &[("mode", "0666")]));
    assert!(words.starts_with("the link \"g\" is not followed"), "{words}");
}

/// Renames two entries of a directory in turn, until the process is killed.
const STORM: &str = r#"chdir shift or die; while (1) { rename "a", "b"; rename "b", "a"; }"#;

/// Endless renames below a tree do not prevent the takeover of the tree.
#[test]
fn a_storm_of_renames_does_not_keep_a_tree_from_being_taken_over() {
    demand_root();
    let dir = scratch();
    let top = dir.path().join("top");
    fs::create_dir(&top).unwrap();
    fs::write(top.join("a"), "").unwrap();
    let mut storm = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups", "perl", "-e", STORM])
        .arg(&top)
        .spawn()
        .unwrap();
    let given = [("owner", "root"), ("group", "root"), ("mode", "0755"), ("recurse", "true")];
    let tree = file(format!("{}/", top.display()), &given);
    let mut taken = 0;
    for _ in 0..20 {
        chown(&top, Some(NOBODY), Some(NOBODY)).unwrap();
        std::thread::sleep(Duration::from_millis(5));
        drop(hold(&Host::default(), &tree));
        taken += u32::from(owner(&top) == (0, 0));
    }
    storm.kill().unwrap();
    storm.wait().unwrap();
    assert_eq!(taken, 20);
}
