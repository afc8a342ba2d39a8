//! The checks of all files together: identities, resources, claims, metaparameters, edges.
//!
//! The checks must not depend on which reader produced the files. Reading order: this file ([`check`]), `collections`,
//! `identities`, `metaparams`, `semaphores`, `world_permits`, `values`, `edges`, `edge_sets`, `set_index`,
//! `exports`, `inactive`, `led_edges`, `probe_cycles`, `auto_edges`, `claims`, `aliases`, `assemble`, `selection`.

pub(super) mod aliases;
mod assemble;
pub(super) mod auto_edges;
pub(super) mod claims;
pub(super) mod collections;
pub(super) mod edge_sets;
pub(super) mod edges;
pub(super) mod exports;
pub(super) mod identities;
pub(super) mod inactive;
mod led_edges;
pub(super) mod metaparams;
mod probe_cycles;
pub(super) mod selection;
pub(super) mod semaphores;
pub(super) mod set_index;
pub(super) mod values;
pub(super) mod world_permits;

use super::ast;
use super::problem::code::Code;
use super::problem::location::{DocumentInfo, Element, Location, SourceMap};
use super::problem::{Problem, Problems, Severity, quoted};
use super::source_file::SourceFile;
use super::{Aliases, LoadedGraph, Options, Origin};
use crate::world::selector::CollectionSelector;
use edges::DraftEdge;
pub(super) use identities::wrong_name;
use identities::{declared_twice, definitions, with_repeat_hint};
use metaparams::{Delete, Metas, Own};
use semaphores::{Refused, Semaphores};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;
use steadfast_engine::Meta;
use steadfast_resources::KindSet;
use steadfast_resources::host::input_trust::Reader;
use steadfast_resources::{DeferredResource, HostObject, Invalid, KindSpec, Place, Resource};
use values::{PendingReceive, Secret, SecretField};

/// The completeness of the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Whole {
    /// Every file was read: an undeclared name does not exist.
    Yes,
    /// Some file could not be read: an unknown name may be declared there.
    No,
}

/// A vertex that later checks may still reject.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(super) struct DraftVertex {
    pub(super) identity: Arc<str>,
    pub(super) at: Location,
    pub(super) spec: &'static KindSpec,
    pub(super) resource: Option<Arc<dyn Resource>>,
    /// The roles of the resource for other paths.
    pub(super) roles: claims::PathRoles,
    pub(super) recipe: Option<Arc<DeferredResource>>,
    pub(super) definition: u64,
    meta: Arc<Meta>,
    rewatch: bool,
    /// True if the vertex takes part in automatic edges.
    pub(super) autoedge: bool,
    autogroup: bool,
    delete: bool,
    protect: bool,
    pub(super) aliases: Aliases,
    /// The condition as written, if the resource has one.
    pub(super) condition: Option<Arc<str>>,
    pub(super) labels: Arc<[(String, String)]>,
    line: u32,
}

/// The state of the checks.
pub(super) struct Validator<'a> {
    pub(super) kinds: &'a KindSet,
    pub(super) atlas: SourceMap<'a>,
    pub(super) problems: &'a mut Problems,
    pub(super) whole: bool,
    pub(super) numbers: HashMap<Arc<str>, usize>,
    pub(super) strangers: HashSet<String>,
    pub(super) vertices: Vec<DraftVertex>,
    pub(super) inactive: Vec<inactive::DraftInactive>,
    /// The members of the sets that edges name.
    pub(super) sets: HashMap<Arc<str>, Arc<[usize]>>,
    /// The edges of these sets by direction.
    set_uses: HashMap<(Arc<str>, edge_sets::Side), edge_sets::SetUse>,
    /// The index of the declared resources; made at its first use.
    set_index: Option<set_index::SetIndex>,
    /// The modules by instance, with their exports.
    exporters: HashMap<Arc<str>, Arc<crate::config::document::Origin>>,
    /// The number of vertices between two sets.
    pub(super) barriers: usize,
    /// The number of edges that patterns made.
    pub(super) set_edges: usize,
    pub(super) ties: Vec<DraftEdge>,
    pub(super) suggested: usize,
    pub(super) wants_origins: bool,
    pub(super) origins: Vec<Origin>,
    /// The selections of the collections of other hosts' resources.
    pub(super) collections: BTreeSet<CollectionSelector>,
    /// The collected resources whose exports have vanished.
    pub(super) vanished: HashSet<Arc<str>>,
    pub(super) claims: HashMap<HostObject, usize>,
    /// The objects of shared claims, and the memberships of groups, with the claiming vertices.
    pub(super) shared: Vec<(HostObject, usize)>,
    /// The files whose content several resources edit.
    pub(super) edited: Vec<(PathBuf, usize)>,
    /// The paths of inactive resources: no purge removes them.
    pub(super) spared: Vec<(PathBuf, usize)>,
    pub(super) secrets: HashMap<String, Secret>,
    pub(super) awaited: Vec<PendingReceive>,
    /// The fields that receive secrets.
    pub(super) confided: Vec<SecretField>,
    /// A buffer for building identities.
    identity: String,
    metas: Metas,
    semaphores: Semaphores,
}

/// Runs all checks. Returns the graph if every vertex is valid; edges may still have problems.
pub(super) fn check(
    mut files: Vec<ast::GraphFile>,
    (sources, documents): (&[Arc<SourceFile>], &[DocumentInfo]),
    options: &Options,
    whole: Whole,
    problems: &mut Problems,
) -> Option<LoadedGraph> {
    let spots = files.iter_mut().map(|file| file.spots.take()).collect();
    let mut semaphores = Semaphores::default();
    if options.semaphore == Some(0) {
        let problem = Problem::new(Code::Selection, "--sema should be at least 1, found 0");
        problems.push(problem.hint("0 would prevent every run; omit the flag for no limit"));
    }
    let reserved = options.semaphore.filter(|count| *count > 0);
    let reserved = reserved.map(|count| semaphores.reserve(count));
    let mut checker = Validator {
        kinds: &options.kinds,
        atlas: SourceMap { sources, documents, spots },
        problems,
        whole: whole == Whole::Yes,
        numbers: HashMap::new(),
        strangers: files.iter_mut().flat_map(|file| std::mem::take(&mut file.strangers)).collect(),
        vertices: Vec::new(),
        inactive: Vec::new(),
        sets: HashMap::new(),
        set_uses: HashMap::new(),
        set_index: None,
        exporters: exports::exporters(documents),
        barriers: 0,
        set_edges: 0,
        ties: Vec::new(),
        suggested: 0,
        wants_origins: options.origins,
        origins: Vec::new(),
        collections: BTreeSet::new(),
        vanished: HashSet::new(),
        claims: HashMap::new(),
        shared: Vec::new(),
        edited: Vec::new(),
        spared: Vec::new(),
        secrets: HashMap::new(),
        awaited: Vec::new(),
        confided: Vec::new(),
        identity: String::new(),
        metas: Metas::new(options.noop, reserved, options.defaults.clone()),
        semaphores,
    };
    checker.expand_world(&mut files, options.exports.as_deref());
    if files.iter().any(|file| file.resources.iter().any(|it| it.note.is_some())) {
        let prefixes: Vec<String> =
            (0..files.len()).map(|number| checker.prefix_of(&files, number)).collect();
        inactive::defer_receivers(&mut files, &prefixes);
    }
    let name = checker.graph_name(&files);
    let comment = files.iter_mut().find_map(|file| file.comment.take());
    checker.declare_secrets(&mut files);
    let links = checker.resources(&mut files);
    checker.refuse_aliases();
    checker.check_shared_claims();
    checker.share_claims();
    checker.share_closed_directories();
    checker.share_file_owners();
    checker.check_nesting();
    checker.tie_values();
    checker.doubt_confided();
    for (file, index, vertex, links) in links {
        checker.short_edges(vertex, &links, file, index);
    }
    for (number, file) in files.iter().enumerate() {
        checker.long_edges(&file.edges, number);
        checker.module_edges(&file.module_edges, number);
    }
    checker.check_declared_exports();
    checker.check_probes_of_rolls();
    let mut ties = checker.sorted_ties();
    if checker.refuse_cycles(&ties) {
        checker.add_automatic_edges(&mut ties);
    }
    let loaded = checker.finish(&ties)?;
    let loaded = LoadedGraph { name, comment, ..loaded }.with_orders();
    selection::select(loaded, options, problems)
}

/// The short edges of a resource: its file, its index there, its vertex, and the edges.
type LinksOf = (usize, usize, usize, Box<[ast::Link]>);

impl Validator<'_> {
    /// Returns the prefix of the identities in a file: `shop/` in an instance, and nothing outside.
    fn prefix_of(&self, files: &[ast::GraphFile], number: usize) -> String {
        match (files.get(number), self.atlas.documents.get(number)) {
            (Some(file), _) if !file.instance.is_empty() => format!("{}/", file.instance),
            (_, document) => document.map(|it| it.origin.prefix()).unwrap_or_default(),
        }
    }

    fn graph_name(&mut self, files: &[ast::GraphFile]) -> String {
        let given = |spots: &Option<ast::Spans>| spots.as_ref().is_some_and(|s| s.name.is_some());
        let at = |file| Location { file, part: Element::Graph };
        let mut named = files.iter().enumerate().filter_map(|(n, f)| Some((n, f.name.as_ref()?)));
        let Some((first, name)) = named.next() else {
            if self.whole && !self.atlas.spots.iter().any(given) {
                let problem =
                    Problem::new(Code::GraphName, "the graph has no name: expected `graph:`")
                        .hint("start the file with `graph: NAME` and `resources:`");
                let place = files.first().and_then(|_| self.atlas.place(at(0)));
                self.problems.push(problem.at(place));
            }
            return String::new();
        };
        if name.is_empty() {
            let problem = Problem::new(Code::GraphName, "the name of the graph is empty");
            self.problems.push(
                problem.hint("set a name, for example graph: web").at(self.atlas.place(at(first))),
            );
        }
        for (other, again) in named.filter(|(_, again)| *again != name) {
            let (again, before) = (quoted(again), quoted(name));
            let what = format!(
                "this file names the graph `{again}`, another file names the graph `{before}`"
            );
            let problem = Problem::new(Code::GraphName, what).hint("set the name in one file only");
            let problem = problem.at(self.atlas.place(at(other)));
            self.problems.push(problem.at(self.atlas.labelled(at(first), "named here first")));
        }
        name.clone()
    }

    fn resources(&mut self, files: &mut [ast::GraphFile]) -> Vec<LinksOf> {
        let count = files.iter().map(|file| file.resources.len()).sum();
        self.vertices.reserve_exact(count);
        self.numbers.reserve(count);
        let mut links = Vec::new();
        for number in 0..files.len() {
            let base = self.atlas.sources.get(self.atlas.source_of(number));
            let base = base.map(|source| source.base.clone());
            let prefix = self.prefix_of(files, number);
            let place = Place { base: base.unwrap_or_else(|| PathBuf::from("/")) };
            let Some(file) = files.get_mut(number) else { continue };
            for (index, mut resource) in std::mem::take(&mut file.resources).into_iter().enumerate()
            {
                let of = std::mem::take(&mut resource.links);
                let vertex = self.resource(resource, (number, index), (&prefix, &place));
                if let Some(vertex) = vertex.filter(|_| !of.is_empty()) {
                    links.push((number, index, vertex, of));
                }
            }
        }
        links
    }

    /// Checks one resource; returns its vertex unless its name is invalid or taken.
    fn resource(
        &mut self,
        mut given: ast::Resource,
        (file, index): (usize, usize),
        (prefix, place): (&str, &Place),
    ) -> Option<usize> {
        let at = Location { file, part: Element::Name(index) };
        if let Some(problem) = wrong_name(given.spec.kind, &given.name) {
            self.problems.push(problem.at(self.atlas.place(at)));
            return None;
        }
        self.identity.clear();
        self.identity.extend([prefix, given.spec.kind, "[", &given.name, "]"]);
        let identity: Arc<str> = self.identity.as_str().into();
        let note = given.note.take();
        if let Some(note) = note.as_ref().filter(|note| note.inactive.is_some()) {
            return self.inactive_resource(&mut given, (&identity, at), place, note);
        }
        let condition = note.and_then(|note| note.condition);
        if self.refuse_second(&identity, condition.as_ref(), at) {
            return None;
        }
        if prefix.starts_with('@') && self.leaves_out(&given, &identity, place) {
            return None;
        }
        let vertex = self.vertices.len();
        self.numbers.insert(Arc::clone(&identity), vertex);
        let withdraws = given.withdraws;
        let receiver = self.receiver(&mut given, place, vertex, (file, index));
        let sum = receiver.as_ref().map(|(_, sum)| *sum);
        let (definition, aliases) = definitions(&given, (prefix, place), sum);
        let recipe = receiver.map(|(recipe, _)| recipe);
        let own = self.meta((&identity, given.meta.take()), file, index);
        let Own { meta, rewatch, autoedge, autogroup, delete, protect } = own;
        let at_fields = (identity.as_ref(), file, index);
        let resource = self.build(&mut given, recipe.as_ref(), place, at_fields);
        let (mut roles, mut can_be_removed) = (claims::PathRoles::default(), false);
        if let Some(resource) = &resource {
            let footprint = resource.footprint();
            roles = claims::PathRoles::of(&footprint);
            can_be_removed = footprint.removal.is_some();
            self.invalid(Severity::Warning, &footprint.warnings, at_fields);
            self.invalid(Severity::Warning, &untrusted(&footprint.trusts), at_fields);
            self.claim(footprint.claims, vertex, &identity, at);
            if delete == Delete::Always {
                self.removal(resource.as_ref(), (given.spec, &given.name), (file, index));
            }
        }
        let labels: Arc<[(String, String)]> =
            if given.labels.is_empty() { Arc::default() } else { given.labels.to_vec().into() };
        let delete = (delete != Delete::Never || withdraws) && can_be_removed;
        let line = given.line;
        self.vertices.push(DraftVertex {
            identity,
            at,
            spec: given.spec,
            resource,
            roles,
            recipe: recipe.map(Arc::new),
            definition,
            meta,
            rewatch,
            autoedge,
            autogroup,
            delete,
            protect,
            aliases,
            condition,
            labels,
            line,
        });
        Some(vertex)
    }

    /// Reports a second declaration of a resource that is active, or that only waits for a value.
    pub(super) fn refuse_second(
        &mut self,
        identity: &Arc<str>,
        condition: Option<&Arc<str>>,
        at: Location,
    ) -> bool {
        let Some(number) = self.numbers.get(identity) else { return false };
        let first = match number.checked_sub(inactive::FIRST) {
            None => self.vertices.get(*number).map(|it| (it.at, it.condition.clone())),
            Some(number) => self.inactive.get(number).and_then(inactive::DraftInactive::waiting),
        };
        let Some((first, of_first)) = first else { return false };
        let condition = condition.map(AsRef::as_ref);
        let problem = declared_twice(identity, condition, of_first.as_deref());
        let again = self.atlas.labelled(at, "again here");
        let first = self.atlas.labelled(first, "first declared here");
        let problem = with_repeat_hint(problem, again.as_ref(), first.as_ref()).at(again).at(first);
        self.problems.push(problem);
        true
    }

    /// Reports `on_remove: delete` of an object that cannot or must not be deleted.
    fn removal(
        &mut self,
        resource: &dyn Resource,
        (spec, name): (&'static KindSpec, &str),
        (file, index): (usize, usize),
    ) {
        let shown = format!("{}[{}]", spec.kind, quoted(name));
        let removal = resource.footprint().removal;
        let problem = match removal.map(|removal| spec.build_removal(&removal, name)) {
            Some(Ok(_)) => return,
            None => Problem::new(
                Code::Removal,
                format!("{shown}: `on_remove: delete`, but the resource has no object to delete"),
            )
            .hint("omit `on_remove`: an undeclared resource is then forgotten"),
            Some(Err(invalid)) => {
                let why = invalid.first().map_or("", |invalid| invalid.what.as_str());
                Problem::new(Code::Removal, format!("{shown}: the object cannot be deleted: {why}"))
                    .hint("omit `on_remove: delete`")
            }
        };
        let at = Location { file, part: Element::Meta(index, "on_remove") };
        self.problems.push(problem.at(self.atlas.place(at)));
    }

    /// Builds the resource if all of its fields were read and are valid.
    fn build(
        &mut self,
        given: &mut ast::Resource,
        recipe: Option<&DeferredResource>,
        place: &Place,
        at: (&str, usize, usize),
    ) -> Option<Arc<dyn Resource>> {
        // For an incomplete resource, only problems of the fields that were read are reported.
        let read: Option<Vec<_>> = given.broken.then(|| given.given.fields.names().collect());
        let built = match recipe {
            Some(recipe) => recipe.placeholder(),
            None => given.spec.build_resource(
                &given.name,
                std::mem::take(&mut given.given.fields),
                place,
            ),
        };
        let built = built.map_err(|mut invalid| {
            let is_read = |invalid: &Invalid, read: &[&str]| {
                invalid.field.is_some_and(|field| read.contains(&field))
            };
            invalid.retain(|i| read.as_ref().is_none_or(|read| is_read(i, read)));
            self.invalid(Severity::Error, &invalid, at);
        });
        built.ok().filter(|_| read.is_none())
    }

    fn meta(
        &mut self,
        (identity, given): (&str, Option<Box<ast::FieldValues>>),
        file: usize,
        index: usize,
    ) -> Own {
        let (atlas, problems) = (&self.atlas, &mut *self.problems);
        let (semaphores, mut refused, mut own) = (&mut self.semaphores, Vec::new(), HashSet::new());
        let mut take = |text: &str, number| {
            let at = Location { file, part: Element::Semaphore(index, number) };
            match semaphores.take(text, at, &mut own) {
                Ok(id) => return Some(id),
                Err(Refused::Wrong(problem)) => refused.push(problem.at(atlas.place(at))),
                Err(Refused::Conflict(problem, first)) => {
                    let first = first.and_then(|first| atlas.labelled(first, "the other count"));
                    refused.push(problem.at(atlas.place(at)).at(first));
                }
            }
            None
        };
        let made = self.metas.make((identity, given), &mut take, &mut |name, problem| {
            let at = Location { file, part: Element::Meta(index, name) };
            problems.push(problem.at(atlas.place(at)));
        });
        for problem in refused {
            self.problems.push(problem);
        }
        made
    }

    pub(super) fn invalid(
        &mut self,
        severity: Severity,
        invalid: &[Invalid],
        (identity, file, index): (&str, usize, usize),
    ) {
        for invalid in invalid {
            let part =
                invalid.field.map_or(Element::Name(index), |name| Element::Field(index, name));
            let what = format!("{}: {}", quoted(identity), invalid.what);
            let problem = match severity {
                Severity::Error => Problem::new(Code::Field, what),
                Severity::Warning => Problem::new(Code::Doubt, what).warning(),
            };
            let problem = problem.hint_if(invalid.hint.as_ref());
            self.problems.push(problem.at(self.atlas.place(Location { file, part })));
        }
    }
}

/// S-11: returns a doubt for each path that others could change and that a resource reads or runs. Contents and secrets
/// are checked again when a run of root uses them.
pub(super) fn untrusted(paths: &[PathBuf]) -> Vec<Invalid> {
    let reader = Reader::here();
    let untrusted_paths = paths.iter().filter_map(|path| reader.untrusted_on_the_way(path));
    let invalid = |why: String| {
        Invalid::whole("another user could change a file that the resource reads or runs")
            .hint(format!("make the path writable only by root: {why}"))
    };
    untrusted_paths.map(invalid).collect()
}
