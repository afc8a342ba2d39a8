//! The objects of the host that a first graph declares, each checked.

use std::path::{Path, PathBuf};
use steadfast_resources::inspect::{Field, Inspected, inspectors};
use steadfast_resources::{CheckRequest, CheckResult, Fields, Host, KindSet, Place, Value};

/// The numbers of the users and groups of people; smaller and larger ones belong to the system (login.defs).
const PEOPLE: std::ops::Range<i64> = 1000..60000;

/// The folder of the jobs of cron, and that of the jobs of users.
const CRON: [&str; 2] = ["/etc/cron.d", "/var/spool/cron/crontabs"];

/// The unit of this program: the daemon does not hold itself.
const OWN_UNIT: &str = "steadfast.service";

/// A part of the graph: the resources of one kind.
#[derive(Debug)]
pub(super) struct Section {
    /// The kind.
    pub(super) kind: &'static str,
    /// The plural of the kind's objects, for the summary.
    pub(super) objects: &'static str,
    /// The comment above the resources, in lines.
    pub(super) about: &'static [&'static str],
    /// The resources, in order.
    pub(super) found: Vec<Found>,
    /// The reason why the objects cannot be listed.
    pub(super) problem: Option<String>,
}

/// An object of the host.
#[derive(Debug)]
pub(super) struct Found {
    /// The name of the resource.
    pub(super) name: String,
    /// The fields of the resource.
    pub(super) fields: Vec<(&'static str, Value)>,
    /// The reason why the resource is only a comment.
    pub(super) unlike: Option<String>,
}

/// Reads the objects of this host.
pub(super) async fn collect_sections(host: &Host) -> Vec<Section> {
    vec![
        section(host, ("pkg", "packages"), PACKAGES, keep_all).await,
        section(host, ("svc", "services"), SERVICES, keep_service).await,
        section(host, ("group", "groups"), GROUPS, keep_group).await,
        section(host, ("user", "users"), USERS, keep_user).await,
        cron_files(host).await,
    ]
}

const PACKAGES: &[&str] = &[
    "The manually installed packages. A removed one is installed again; versions are left to you.",
    "A package without a line here is left alone, also if it is installed.",
];

const SERVICES: &[&str] = &[
    "The services, sockets and timers that start at boot. Those that run now are kept running.",
    "`notify` from a file makes a service reload; see `steadfast explain svc`.",
];

const GROUPS: &[&str] = &["The groups of people."];

const USERS: &[&str] = &[
    "The users who are people. Passwords are not declared: a graph names a secret instead, with",
    "`password: {secret: NAME}`; see `steadfast explain secrets`.",
];

const CRON_ABOUT: &[&str] = &[
    "The files of cron: owner and mode. Their jobs are not shown, because a command may contain a password.",
    "To hold a job, declare it and delete its file: `steadfast explain cron`.",
];

/// Reads the objects of a kind. `keep` changes the fields, and returns false to leave the object out.
async fn section(
    host: &Host,
    (kind, objects): (&'static str, &'static str),
    about: &'static [&'static str],
    keep: fn(&mut Inspected) -> bool,
) -> Section {
    let mut section = Section { kind, objects, about, found: Vec::new(), problem: None };
    let inspector = inspectors().iter().find(|inspector| inspector.kind == kind);
    let Some((inspector, list)) = inspector.and_then(|it| Some((it, it.all?))) else {
        return section;
    };
    let names = match list(host).await {
        Ok(names) => names,
        Err(failure) => {
            section.problem = Some(failure.what);
            return section;
        }
    };
    for name in names {
        match (inspector.one)(host, &name).await {
            Ok(Some(mut object)) => {
                if keep(&mut object) {
                    section.found.push(checked(host, kind, object).await);
                }
            }
            Ok(None) => {}
            Err(failure) => {
                let unlike = Some(failure.what);
                section.found.push(Found { name, fields: Vec::new(), unlike });
            }
        }
    }
    section.found.sort_by(|one, other| one.name.cmp(&other.name));
    section
}

/// Checks an object against its own declaration, so that a plan of the graph is empty.
async fn checked(host: &Host, kind: &'static str, object: Inspected) -> Found {
    let shown = |(name, field)| match field {
        Field::Shown(value) => Some((name, value)),
        Field::Secret(_) => None,
    };
    let fields: Vec<(&'static str, Value)> = object.fields.into_iter().filter_map(shown).collect();
    let unlike = find_difference(host, kind, (&object.name, &fields)).await;
    Found { name: object.name, fields, unlike }
}

/// Returns the reason why a declaration is not what the host has.
async fn find_difference(
    host: &Host,
    kind: &'static str,
    (name, values): (&str, &[(&'static str, Value)]),
) -> Option<String> {
    let spec = KindSet::of_this_build().find(kind)?;
    let mut fields = Fields::default();
    for (name, value) in values {
        fields.insert(name, value.clone());
    }
    let place = Place { base: PathBuf::from("/") };
    let resource = match spec.build_resource(name, fields, &place) {
        Ok(resource) => resource,
        Err(problems) => {
            return Some(problems.into_iter().next().map_or_else(String::new, |it| it.what));
        }
    };
    match resource.check(host, CheckRequest::default()).await {
        CheckResult::Same => None,
        CheckResult::Differs(change) => {
            let aspects = change.differences.iter().map(|difference| difference.aspect);
            Some(format!("differs in {}", aspects.collect::<Vec<&str>>().join(", ")))
        }
        CheckResult::Unknown(failure) => Some(failure.what),
    }
}

fn keep_all(_: &mut Inspected) -> bool {
    true
}

/// Keeps the units that start at boot and the masked ones. A unit that does not run is not stopped: a job may be due.
fn keep_service(object: &mut Inspected) -> bool {
    let startup = text_of(object, "startup").unwrap_or_default().to_owned();
    if text_of(object, "state") != Some("running") || startup == "masked" {
        object.fields.retain(|(name, _)| *name != "state");
    }
    ["enabled", "masked"].contains(&&*startup) && object.name != OWN_UNIT
}

fn keep_user(object: &mut Inspected) -> bool {
    // A lock is a part of the password, which stays with the host.
    object.fields.retain(|(name, _)| !["password", "lock"].contains(name));
    is_of_people(object, "uid")
}

fn keep_group(object: &mut Inspected) -> bool {
    // The users declare their groups.
    object.fields.retain(|(name, _)| *name != "members");
    is_of_people(object, "gid")
}

fn is_of_people(object: &Inspected, field: &str) -> bool {
    let number = object.fields.iter().find(|(name, _)| *name == field);
    matches!(number, Some((_, Field::Shown(Value::Int(number)))) if PEOPLE.contains(number))
}

fn text_of<'a>(object: &'a Inspected, field: &str) -> Option<&'a str> {
    match object.fields.iter().find(|(name, _)| *name == field) {
        Some((_, Field::Shown(Value::Text(text)))) => Some(text),
        _ => None,
    }
}

/// Reads the files of cron as files without their contents.
async fn cron_files(host: &Host) -> Section {
    let (kind, objects) = ("file", "files of cron");
    let mut section =
        Section { kind, objects, about: CRON_ABOUT, found: Vec::new(), problem: None };
    let Some(inspector) = inspectors().iter().find(|inspector| inspector.kind == kind) else {
        return section;
    };
    for path in CRON.iter().flat_map(|folder| list_files(Path::new(folder))) {
        if let Ok(Some(mut object)) = (inspector.one)(host, &path).await {
            object.fields.retain(|(name, _)| !["content", "sensitive", "state"].contains(name));
            let attributes = Field::Shown(Value::Text("undefined".to_owned()));
            object.fields.insert(0, ("state", attributes));
            section.found.push(checked(host, kind, object).await);
        }
    }
    section
}

/// Returns the regular files of a folder, in order, without hidden ones.
fn list_files(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let is_file = |entry: &std::fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_file());
    let paths = entries.filter(is_file).map(|entry| entry.path());
    let texts = paths.filter_map(|path| Some(path.to_str()?.to_owned()));
    let mut names: Vec<String> = texts.filter(|path| !path.contains("/.")).collect();
    names.sort_unstable();
    names
}
