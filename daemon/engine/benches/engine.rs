//! Benchmarks of the engine alone, on one core: `cargo bench -p steadfast-engine`.
//!
//! Each line is the median of several rounds. Ratios (2n to n) show if the work is linear; they hold on any machine.
//! Absolute times are for the machine that printed them. Each line ends with its limit from the performance goals.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;
use steadfast_engine::{
    Action, Candidate, Edge, Engine, Event, Graph, Meta, Pause, RunVerdict, Slots, Swap, Tick,
    Traits, VertexId, VertexSpec, contract,
};

/// An engine whose checks always find the declared state.
struct Host {
    engine: Engine,
    now: u64,
    checks: u64,
    events: VecDeque<Event>,
}

impl Host {
    fn new() -> Self {
        let slots = Slots { threads: 64, commands: 64, replaceable: 0 };
        Self { engine: Engine::new(slots, false), now: 1, checks: 0, events: VecDeque::new() }
    }

    fn handle(&mut self, event: Event) {
        self.events.push_back(event);
        while let Some(event) = self.events.pop_front() {
            self.now += 1;
            for action in self.engine.handle(Tick(self.now), event) {
                self.answer(&action);
            }
        }
    }

    fn answer(&mut self, action: &Action) {
        match action {
            Action::Watch(id) => self.events.push_back(Event::Watching(*id)),
            Action::Start(start) => {
                self.checks += 1;
                self.events.push_back(Event::Checked(start.run, RunVerdict::Same));
            }
            Action::SavePause(_) => self.events.push_back(Event::PauseSaved),
            Action::Unwatch(_)
            | Action::Mute(_)
            | Action::Unmute(_)
            | Action::Forget(..)
            | Action::Notify(_)
            | Action::Begin(_)
            | Action::Apply(..)
            | Action::End(_)
            | Action::Cancel(..) => {}
        }
    }

    fn load(&mut self, graph: &Arc<Graph>) {
        let graph = Arc::clone(graph);
        self.handle(Event::Swap(Swap { graph, recall: BTreeMap::new(), operator: false }));
    }
}

fn graph(count: u32, edges: impl Iterator<Item = (u32, u32)>) -> Arc<Graph> {
    graph_but(count, edges, None)
}

/// Builds a graph of which one vertex has another definition. The metaparams are allocated anew, as in a graph that was
/// read again.
fn graph_but(
    count: u32,
    edges: impl Iterator<Item = (u32, u32)>,
    other: Option<(u32, u64)>,
) -> Arc<Graph> {
    let meta = Arc::new(Meta::default());
    let declared = |number| VertexSpec {
        id: VertexId(number),
        definition: other.filter(|(id, _)| *id == number).map_or(1, |(_, definition)| definition),
        meta: Arc::clone(&meta),
        traits: Traits::default(),
    };
    let edges = edges
        .map(|(from, to)| Edge { from: VertexId(from), to: VertexId(to), notify: false })
        .collect();
    match Graph::new((0..count).map(declared).collect(), edges, Vec::new()) {
        Ok(graph) => Arc::new(graph),
        Err(error) => panic!("the bench writes valid graphs: {error}"),
    }
}

fn tree(count: u32) -> Arc<Graph> {
    graph(count, (1..count).map(up_the_tree))
}

fn up_the_tree(number: u32) -> (u32, u32) {
    ((number - 1) / 10, number)
}

fn star(leaves: u32) -> Arc<Graph> {
    graph(leaves + 1, (1..=leaves).map(|leaf| (0, leaf)))
}

fn chain(count: u32) -> Arc<Graph> {
    graph(count, (1..count).map(|number| (number - 1, number)))
}

fn fan_in(leaves: u32) -> Arc<Graph> {
    graph(leaves + 1, (0..leaves).map(|leaf| (leaf, leaves)))
}

fn layers(count: u32, width: u32) -> Arc<Graph> {
    let pair = move |layer: u32| {
        (0..width * width)
            .map(move |n| ((layer - 1) * width + n / width, layer * width + n % width))
    };
    graph(count * width, (1..count).flat_map(pair))
}

/// Returns the median time of `rounds` rounds.
fn median(rounds: usize, mut round: impl FnMut() -> Duration) -> Duration {
    let mut all: Vec<Duration> = (0..rounds).map(|_| round()).collect();
    all.sort_unstable();
    all.get(rounds / 2).copied().unwrap_or_default()
}

#[expect(clippy::disallowed_methods, reason = "a bench reads the clock, the engine does not")]
fn timed(work: impl FnOnce()) -> Duration {
    let before = std::time::Instant::now();
    work();
    before.elapsed()
}

/// Measures one event of one vertex of a loaded graph, with everything that follows.
fn event(graph: &Arc<Graph>, vertex: u32) -> Duration {
    let mut host = Host::new();
    host.load(graph);
    let before = host.checks;
    let times = 2000;
    let all = median(9, || {
        timed(|| (0..times).for_each(|_| host.handle(Event::Changed(VertexId(vertex)))))
    });
    assert_eq!(host.checks - before, 9 * u64::from(times), "one check for each event");
    all / times
}

fn start(graph: &Arc<Graph>) -> Duration {
    median(7, || {
        let mut host = Host::new();
        timed(|| host.load(graph))
    })
}

fn reload(graph: &Arc<Graph>) -> Duration {
    let mut host = Host::new();
    host.load(graph);
    median(7, || timed(|| host.load(graph)))
}

/// The difference that a swap of a tree makes (E-17).
#[derive(Clone, Copy)]
enum Differs {
    /// The definition of one leaf changes.
    Leaf,
    /// One leaf is added, and removed again.
    Size,
    /// One leaf gets another parent.
    Edge,
}

/// Measures a swap that changes one thing in a graph that is read anew each time. The time includes freeing the old
/// graph.
fn swap_of_one(count: u32, differs: Differs, operator: bool) -> Duration {
    let mut host = Host::new();
    host.load(&tree(count));
    let mut round = 1;
    median(15, || {
        round += 1;
        let odd = u32::from(round % 2 == 1);
        let leaf = count - 1;
        let edges = (1..count).map(up_the_tree);
        let graph = match differs {
            Differs::Leaf => graph_but(count, edges, Some((leaf, round))),
            Differs::Size => tree(count + odd),
            Differs::Edge => {
                graph(count, edges.map(|(from, to)| (from - odd * u32::from(to == leaf), to)))
            }
        };
        let before = host.checks;
        let spent =
            timed(|| host.handle(Event::Swap(Swap { graph, recall: BTreeMap::new(), operator })));
        assert!(host.checks - before <= 1, "what stays as it is is not looked at");
        spent
    })
}

/// Measures the resume after a pause with an event for every vertex.
fn resume(graph: &Arc<Graph>) -> Duration {
    let mut host = Host::new();
    host.load(graph);
    median(7, || {
        host.handle(Event::Pause(Pause {
            drain: false,
            until: Tick(u64::MAX / 2),
            recorded: false,
        }));
        for id in graph.order() {
            host.handle(Event::Changed(*id));
        }
        timed(|| host.handle(Event::Resume))
    })
}

/// Returns the resident memory of this process, in bytes.
fn resident() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = statm.split_whitespace().nth(1).and_then(|word| word.parse::<u64>().ok());
    pages.unwrap_or(0) * 4096
}

/// Returns the bytes per vertex, without its edges and the graph that declares it.
fn bytes() -> u64 {
    let count = 400_000;
    let graph = graph(count, std::iter::empty());
    let mut host = Host::new();
    let before = resident();
    host.load(&graph);
    // The queued events were returned to the allocator; measuring again gives a stable value.
    host.events = VecDeque::new();
    resident().saturating_sub(before) / u64::from(count)
}

/// Measures the contraction of a graph (E-19) in which every second vertex may be grouped, in four classes.
fn contracted(graph: &Graph) -> Duration {
    let meta = Arc::new(Meta::default());
    let candidates: Vec<Candidate> = graph
        .vertices()
        .map(|vertex| Candidate {
            id: vertex.id,
            key: vertex.id.0.is_multiple_of(2).then_some(vertex.id.0 / 2 % 4),
            meta: Arc::clone(&meta),
            leads: false,
        })
        .collect();
    median(9, || timed(|| drop(contract(&candidates, graph.edges()))))
}

/// A measured operation on a graph.
type Work = fn(&Arc<Graph>) -> Duration;

fn ratio(many: Duration, few: Duration) -> f64 {
    many.as_secs_f64() / few.as_secs_f64()
}

fn main() {
    let mut text = String::new();
    let mut say = |line: std::fmt::Arguments<'_>| {
        text.write_fmt(line).and_then(|()| text.write_char('\n')).unwrap_or_default();
    };
    say(format_args!("one event, one check (microseconds are the goal):"));
    for (name, graph, vertex) in [
        ("W-2 star of 1000, a leaf", star(1000), 500),
        ("W-2 star of 1000, the centre", star(1000), 0),
        ("W-3 chain of 1000, the tail", chain(1000), 999),
        ("W-4 tree of 10 000, a leaf", tree(10_000), 9999),
        ("W-6 30 layers of 10, the last", layers(30, 10), 299),
        ("W-7 fan-in of 10 000, a leaf", fan_in(10_000), 7),
        ("tree of 10 000, the root (at most 1 ms)", tree(10_000), 0),
    ] {
        say(format_args!("  {name}: {:.2?}", event(&graph, vertex)));
    }
    let leaf = event(&tree(100_000), 99_999);
    say(format_args!(
        "leaf events per second: {:.0} (at least 1 000 000)",
        1.0 / leaf.as_secs_f64()
    ));
    say(format_args!("2n beside n (about 2 is linear):"));
    let (few, many) = (tree(50_000), tree(100_000));
    let sorts: [(&str, Work); 3] =
        [("start", start), ("reload of the same graph", reload), ("resume with all dirty", resume)];
    for (name, work) in sorts {
        let (n, twice) = (work(&few), work(&many));
        say(format_args!("  {name}: {n:.2?}, {twice:.2?}, ratio {:.2}", ratio(twice, n)));
    }
    let (n, twice) = (start(&fan_in(50_000)), start(&fan_in(100_000)));
    say(format_args!(
        "  W-7 start of a fan-in: {n:.2?}, {twice:.2?}, ratio {:.2}",
        ratio(twice, n)
    ));
    let (n, twice) = (start(&layers(30, 20)), start(&layers(60, 20)));
    say(format_args!("  W-6 start of layers: {n:.2?}, {twice:.2?}, ratio {:.2}", ratio(twice, n)));
    say(format_args!(
        "E-17 a swap that changes one thing of 10 000, and of 100 000 (at most 10 ms):"
    ));
    for (name, differs, operator) in [
        ("a definition", Differs::Leaf, false),
        ("a definition, as the operator reloads", Differs::Leaf, true),
        ("a vertex more or less", Differs::Size, false),
        ("an edge", Differs::Edge, false),
    ] {
        let (n, tenfold) =
            (swap_of_one(10_000, differs, operator), swap_of_one(100_000, differs, operator));
        let times = ratio(tenfold, n);
        say(format_args!("  {name}: {n:.2?}, {tenfold:.2?}, ratio {times:.2}"));
    }
    say(format_args!("E-19 groups of 10 000 vertices (at most 50 ms):"));
    for (name, graph) in [
        ("no edges", graph(10_000, std::iter::empty())),
        ("tree", tree(10_000)),
        ("fan-in", fan_in(9_999)),
        ("500 layers of 20", layers(500, 20)),
        ("chain", chain(10_000)),
    ] {
        say(format_args!("  {name}: {:.2?}", contracted(&graph)));
    }
    say(format_args!("bytes per vertex besides edges: {} (at most 300)", bytes()));
    std::io::stdout().write_all(text.as_bytes()).unwrap_or_default();
}
