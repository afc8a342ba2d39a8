//! Random graphs: drawn, altered for a reload, and written as YAML text.

use crate::input::chance::Chance;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use steadfast::config::{LoadedGraph, Options, Rejected, load};

/// The kind and the fields of a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Thing {
    File { path: PathBuf, content: Content, mode: Option<u32> },
    Directory { path: PathBuf, mode: Option<u32> },
    Absent { path: PathBuf },
    Link { path: PathBuf, target: &'static str },
    Exec { creates: Option<PathBuf>, watched: Vec<PathBuf>, refresh_only: bool, always: bool },
    Msg,
    Value { text: String },
    Test { changed: bool, sleep: u64 },
}

/// A content as text, or the name of the `value` resource that sends the content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    Text(String),
    Of(String),
}

/// The metaparams of a resource, as written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Meta(pub(crate) BTreeMap<&'static str, String>);

/// A resource as declared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Declared {
    pub(crate) thing: Thing,
    pub(crate) meta: Meta,
}

/// A graph: resources by name, and edges from first to second; the flag is true for a notifying edge.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) resources: BTreeMap<String, Declared>,
    pub(crate) edges: BTreeMap<(String, String), bool>,
    /// The random numbers for maintenance windows; none for graphs without windows.
    aside: Option<Chance>,
    /// The former names of resources, by present name.
    pub(crate) former: BTreeMap<String, String>,
}

impl Thing {
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::File { .. } | Self::Directory { .. } => "file",
            Self::Absent { .. } | Self::Link { .. } => "file",
            Self::Exec { .. } => "exec",
            Self::Msg => "msg",
            Self::Value { .. } => "value",
            Self::Test { .. } => "test",
        }
    }

    /// Returns true if each run of the resource repeats its effect.
    pub(crate) fn is_deed(&self) -> bool {
        match self {
            Self::Exec { creates, refresh_only, .. } => creates.is_none() || *refresh_only,
            Self::Msg | Self::Test { .. } => true,
            Self::File { .. } | Self::Directory { .. } => false,
            Self::Absent { .. } | Self::Link { .. } | Self::Value { .. } => false,
        }
    }

    /// Returns the path of a file resource.
    pub(crate) fn path(&self) -> Option<&Path> {
        match self {
            Self::File { path, .. } | Self::Directory { path, .. } => Some(path),
            Self::Absent { path } | Self::Link { path, .. } => Some(path),
            Self::Exec { .. } | Self::Msg | Self::Value { .. } | Self::Test { .. } => None,
        }
    }
}

impl Declared {
    pub(crate) fn is_noop(&self) -> bool {
        self.meta.0.contains_key("noop")
    }
}

/// Loads a graph from a file of the real host, on a thread outside the simulated host.
pub(crate) fn load_outside(path: &Path) -> Result<LoadedGraph, Rejected> {
    let paths = [path.to_owned()];
    let load = || load(&paths, &Options::new(steadfast::config::KindSet::of_this_build()));
    std::thread::scope(|all| all.spawn(load).join().expect("no panic"))
}

/// The directories, names, contents and modes of the declared files.
pub(crate) const DIRECTORIES: [&str; 4] = ["/a", "/b", "/a/c", "/b/d/e"];
const FILES: [&str; 3] = ["x", "y", "z"];
pub(crate) const CONTENTS: [&str; 4] = ["one\n", "two\n", "", "three\nlines\nlong\n"];
pub(crate) const MODES: [u32; 3] = [0o644, 0o600, 0o755];

impl Shape {
    pub(crate) fn draw(chance: &mut Chance) -> Self {
        Self::draw_with(chance, None)
    }

    /// Draws a graph; `aside` draws maintenance windows for some of its resources.
    pub(crate) fn draw_with(chance: &mut Chance, aside: Option<Chance>) -> Self {
        let mut shape = Self { aside, ..Self::default() };
        let count = *chance.pick(&[1, 2, 3, 4, 6, 8, 12]);
        for _ in 0..count {
            shape.grow(chance);
        }
        shape.join(chance);
        shape
    }

    /// Returns a copy with up to three alterations, for a reload.
    pub(crate) fn altered(&self, chance: &mut Chance) -> Self {
        let mut shape = self.clone();
        for _ in 0..chance.within(1, 3) {
            let names: Vec<String> = shape.resources.keys().cloned().collect();
            match chance.below(5) {
                0 => shape.grow(chance),
                1 if !names.is_empty() => shape.remove(chance.pick(&names).clone().as_str()),
                2 if !names.is_empty() => {
                    let name = chance.pick(&names).clone();
                    shape.revise(&name, chance);
                }
                3 => {
                    let edges: Vec<_> = shape.edges.keys().cloned().collect();
                    if !edges.is_empty() {
                        shape.edges.remove(chance.pick(&edges));
                    }
                }
                _ => {}
            }
        }
        shape.join(chance);
        shape
    }

    /// Draws another content or metaparam for one resource.
    fn revise(&mut self, name: &str, chance: &mut Chance) {
        let Some(declared) = self.resources.get_mut(name) else { return };
        match &mut declared.thing {
            Thing::File { content, mode, .. } => {
                *content = Content::Text((*chance.pick(&CONTENTS)).to_owned());
                *mode = chance.percent(30).then(|| *chance.pick(&MODES));
            }
            Thing::Directory { mode, .. } => *mode = Some(0o700),
            Thing::Value { text } => *text = (*chance.pick(&CONTENTS)).trim().to_owned() + "v",
            Thing::Exec { always, .. } => *always = !*always,
            Thing::Link { target, .. } => *target = "/made",
            Thing::Absent { .. } | Thing::Msg | Thing::Test { .. } => {}
        }
        declared.meta = meta(&declared.thing, chance, self.aside.as_mut());
    }

    pub(crate) fn remove(&mut self, name: &str) {
        self.resources.remove(name);
        self.edges.retain(|(from, to), _| from != name && to != name);
        for declared in self.resources.values_mut() {
            if let Thing::File { content, .. } = &mut declared.thing
                && *content == Content::Of(name.to_owned())
            {
                *content = Content::Text("it is gone\n".to_owned());
            }
        }
    }

    fn grow(&mut self, chance: &mut Chance) {
        let thing = match chance.below(20) {
            0..8 => self.draw_file(chance),
            8..11 => Thing::Directory {
                path: PathBuf::from(*chance.pick(&DIRECTORIES)),
                mode: chance.percent(30).then_some(0o750),
            },
            11..16 => Thing::Exec {
                creates: chance.percent(20).then(|| PathBuf::from("/made").join(self.free("m"))),
                watched: self.some_paths(chance),
                refresh_only: chance.percent(30),
                always: chance.percent(20),
            },
            16..18 => Thing::Msg,
            18 => Thing::Value { text: format!("value{}", chance.below(3)) },
            _ => Thing::Test { changed: chance.percent(50), sleep: chance.below(200) },
        };
        let is_taken =
            |other: &Declared| thing.path().is_some_and(|path| other.thing.path() == Some(path));
        if self.resources.values().any(is_taken) {
            return;
        }
        let name = self.free(thing.kind().get(..1).expect("a word"));
        let meta = meta(&thing, chance, self.aside.as_mut());
        self.resources.insert(name, Declared { thing, meta });
    }

    fn draw_file(&self, chance: &mut Chance) -> Thing {
        let path = Path::new(*chance.pick(&DIRECTORIES)).join(*chance.pick(&FILES));
        if chance.percent(15) {
            return Thing::Absent { path };
        }
        if chance.percent(12) {
            let target = chance.pick::<&str>(&["/made/m0", "/b", "nowhere"]);
            return Thing::Link { path, target };
        }
        let is_value =
            |declared: &&String| matches!(self.resources[*declared].thing, Thing::Value { .. });
        let values: Vec<&String> = self.resources.keys().filter(is_value).collect();
        let content = if !values.is_empty() && chance.percent(50) {
            Content::Of((*chance.pick(&values)).clone())
        } else {
            Content::Text((*chance.pick(&CONTENTS)).to_owned())
        };
        Thing::File { path, content, mode: chance.percent(30).then(|| *chance.pick(&MODES)) }
    }

    fn some_paths(&self, chance: &mut Chance) -> Vec<PathBuf> {
        let paths: Vec<&Path> =
            self.resources.values().filter_map(|declared| declared.thing.path()).collect();
        let wanted = !paths.is_empty() && chance.percent(40);
        if wanted { vec![(*chance.pick(&paths)).to_owned()] } else { Vec::new() }
    }

    /// Returns the first unused name with this beginning.
    fn free(&self, begin: &str) -> String {
        let names = (0..).map(|number| format!("{begin}{number}"));
        names.into_iter().find(|name| !self.resources.contains_key(name)).expect("one is free")
    }

    /// Adds the required edges and some random ones.
    pub(crate) fn join(&mut self, chance: &mut Chance) {
        let names: Vec<String> = self.resources.keys().cloned().collect();
        for name in &names {
            for other in self.needs(name) {
                self.edges.entry((other, name.clone())).or_insert(false);
            }
        }
        if names.len() < 2 {
            return;
        }
        for _ in 0..chance.below(names.len() as u64 * 2) {
            let (from, to) = (chance.pick(&names).clone(), chance.pick(&names).clone());
            if from != to && !self.leads(&to, &from) {
                let notify = chance.percent(60);
                self.edges.entry((from, to)).or_insert(notify);
            }
        }
    }

    /// Returns the resources that must converge before this one can.
    fn needs(&self, name: &str) -> Vec<String> {
        let thing = &self.resources[name].thing;
        let mut needs = Vec::new();
        if let Thing::File { content: Content::Of(value), .. } = thing {
            needs.push(value.clone());
        }
        for (other, declared) in &self.resources {
            if let (Thing::Directory { path: above, .. }, Some(path)) =
                (&declared.thing, thing.path())
                && path != above
                && path.starts_with(above)
            {
                needs.push(other.clone());
            }
        }
        needs.retain(|other| !self.leads(name, other));
        needs
    }

    /// Returns true if a path of edges leads from one resource to the other.
    fn leads(&self, from: &str, to: &str) -> bool {
        let (mut seen, mut left) = (BTreeSet::new(), vec![from.to_owned()]);
        while let Some(at) = left.pop() {
            if at == to {
                return true;
            }
            if seen.insert(at.clone()) {
                left.extend(self.edges.keys().filter(|edge| edge.0 == at).map(|e| e.1.clone()));
            }
        }
        false
    }

    /// Returns true if a resource receives another value than in the earlier graph.
    pub(crate) fn moves_a_value(&self, before: &Self) -> bool {
        self.resources.values().any(|declared| match &declared.thing {
            Thing::File { content: Content::Of(value), .. } => {
                before.resources.get(value).is_some_and(|was| *was != self.resources[value])
            }
            _ => false,
        })
    }

    /// Sets `realize` for each resource that is not noop.
    pub(crate) fn realize_all(&mut self) {
        for declared in self.resources.values_mut() {
            if !declared.meta.0.contains_key("noop") {
                declared.meta.0.insert("realize", "true".to_owned());
            }
        }
    }

    /// Returns the resources with `realize`.
    pub(crate) fn to_realize(&self) -> BTreeSet<String> {
        let marked = self.resources.iter().filter(|(_, d)| d.meta.0.contains_key("realize"));
        marked.map(|(name, _)| self.identity(name)).collect()
    }

    pub(crate) fn identity(&self, name: &str) -> String {
        format!("{}[{name}]", self.resources[name].thing.kind())
    }

    /// Formats the graph as YAML.
    pub(crate) fn text(&self) -> String {
        let mut text = "graph: simulated\nresources:\n".to_owned();
        for kind in ["exec", "file", "msg", "test", "value"] {
            let of_kind = self.resources.iter().filter(|(_, d)| d.thing.kind() == kind);
            let mut of_kind = of_kind.peekable();
            if of_kind.peek().is_some() {
                text.push_str(&format!("  {kind}:\n"));
            }
            for (name, declared) in of_kind {
                text.push_str(&format!("    - name: {name}\n"));
                self.fields(name, declared, &mut text);
                if let Some(former) = self.former.get(name) {
                    text.push_str(&format!("      aliases: {former}\n"));
                }
            }
        }
        if self.resources.is_empty() {
            return "graph: simulated\nresources: {}\n".to_owned();
        }
        text
    }

    fn fields(&self, name: &str, declared: &Declared, text: &mut String) {
        let mut field = |key: &str, value: &str| text.push_str(&format!("      {key}: {value}\n"));
        match &declared.thing {
            Thing::File { path, content, mode } => {
                field("force", "true");
                field("path", &format!("{:?}", path.display().to_string()));
                match content {
                    Content::Text(content) => field("content", &format!("{content:?}")),
                    Content::Of(value) => {
                        field("recv", &format!("{{ content: \"value[{value}].text\" }}"));
                    }
                }
                if let Some(mode) = mode {
                    field("mode", &format!("\"{mode:04o}\""));
                }
            }
            Thing::Link { path, target } => {
                field("path", &format!("\"{}\"", path.display()));
                field("symlink", &format!("\"{target}\""));
                field("force", "true");
            }
            Thing::Directory { path, mode } => {
                field("force", "true");
                field("path", &format!("\"{}/\"", path.display()));
                if let Some(mode) = mode {
                    field("mode", &format!("\"{mode:04o}\""));
                }
            }
            Thing::Absent { path } => {
                field("path", &format!("{:?}", path.display().to_string()));
                field("state", "absent");
                field("force", "true");
            }
            Thing::Exec { creates, watched, refresh_only, always } => {
                let made = creates.as_ref().map(|path| format!(" {}", path.display()));
                field("cmd", &format!("\"work {name}{}\"", made.unwrap_or_default()));
                if let Some(path) = creates {
                    field("creates", &format!("\"{}\"", path.display()));
                }
                if !watched.is_empty() {
                    field("watchfiles", &format!("{watched:?}"));
                }
                if *refresh_only {
                    field("refresh_only", "true");
                }
                if *always && creates.is_none() && !*refresh_only {
                    field("always", "true");
                }
            }
            Thing::Msg => {}
            Thing::Value { text } => field("text", &format!("{text:?}")),
            Thing::Test { changed, sleep } => {
                field("changed", &changed.to_string());
                field("sleep", &format!("0.{sleep:03}"));
            }
        }
        if !declared.meta.0.is_empty() {
            let pairs = declared.meta.0.iter().map(|(key, value)| format!("{key}: {value}"));
            field("meta", &format!("{{ {} }}", pairs.collect::<Vec<_>>().join(", ")));
        }
        let mut edges: [Vec<String>; 2] = Default::default();
        for ((_, to), notify) in self.edges.iter().filter(|((from, _), _)| from == name) {
            edges[usize::from(*notify)].push(format!("{:?}", self.identity(to)));
        }
        for (key, to) in ["before", "notify"].iter().zip(edges) {
            if !to.is_empty() {
                field(key, &format!("[{}]", to.join(", ")));
            }
        }
    }
}

/// The maintenance windows. Runs begin on a Monday at 14:13:20 (`run.rs`): one window opens later, one closes and
/// opens again. At the end all are open.
const HOURS: [&str; 3] =
    ["14:15-13:00", "Mon 14:16-24:00, Tue..Sun", "Mon 14:00-14:14, 14:16-13:00"];

fn meta(thing: &Thing, chance: &mut Chance, aside: Option<&mut Chance>) -> Meta {
    let mut meta = BTreeMap::new();
    let mut put = |percent, key, values: &[&str], chance: &mut Chance| {
        if chance.percent(percent) {
            meta.insert(key, (*chance.pick(values)).to_owned());
        }
    };
    put(30, "retry", &["1", "3", "-1"], chance);
    put(20, "delay", &["100", "700", "5000"], chance);
    put(10, "sema", &["[\"one:1\"]", "[\"two:2\"]", "[\"one:1\", \"two:2\"]"], chance);
    put(8, "poll", &["3", "20"], chance);
    put(8, "limit", &["0.5", "5"], chance);
    put(4, "noop", &["true"], chance);
    put(8, "on_conflict", &["win", "yield"], chance);
    put(6, "realize", &["true"], chance);
    put(8, "timeout", &["1000", "20000"], chance);
    put(8, "reset", &["true"], chance);
    put(10, "autoedge", &["false"], chance);
    if let Some(aside) = aside.filter(|_| !meta.contains_key("noop"))
        && aside.percent(40)
    {
        meta.insert("when_allowed", format!("\"{}\"", aside.pick(&HOURS)));
    }
    if thing.is_deed() || meta.contains_key("noop") {
        // A resource with `poll` runs at each tick and would never become quiet.
        meta.remove("poll");
    }
    Meta(meta)
}
