//! `steadfast drift`: the present differences between host and graph. The command needs no state and writes nothing.

use crate::cli::args::Drift;
use crate::cli::exit::Exit;
use crate::cli::one_shot::plan_report;
use crate::cli::one_shot::plan_text::Title;
use crate::cli::output::out_json;
use crate::cli::output::render;
use crate::cli::{args, load_graph};
use crate::plan::StepCollector;
use crate::store::StoredState;
use std::sync::Arc;
use steadfast_resources::{MintKey, Origin, RunPolicy, ValueRetention};
use tokio::runtime::Runtime;

/// Prints the differences.
pub(in crate::cli) fn drift(args: &Drift, key: MintKey) -> Exit {
    render::set_up(args::Log::Human, None, render::Process::Command);
    crate::cli::on_runtime(|runtime| once(args, key, runtime))
}

fn once(args: &Drift, key: MintKey, runtime: &Runtime) -> Exit {
    let options = load_graph::options(&args.graph);
    let loaded = options.and_then(|options| load_graph::read(&args.graph, &options, args.json));
    let loaded = match loaded {
        Ok(loaded) => loaded,
        Err(exit) => return exit,
    };
    // A resource without a state (an `exec`) cannot differ. Resources that receive values are skipped, because the
    // values are unknown here.
    let loaded = loaded.subset(|vertex| {
        let sent = |origin: &Origin| matches!(origin, Origin::Sent { .. });
        let receives = vertex.recipe.as_ref().is_some_and(|r| r.origins.iter().any(sent));
        let is_kept = vertex.resource.with_sent(ValueRetention::Sealed).is_some();
        vertex.resource.traits().repeat == RunPolicy::State && !receives && !is_kept
    });
    let whole = (loaded, &args.graph);
    let found = plan_report::find(
        whole,
        StoredState::default(),
        (Arc::new(key), runtime),
        StepCollector::of_now,
    );
    let found = match found {
        Ok(found) => found,
        Err(exit) => return exit,
    };
    if args.json {
        out_json(&found.report());
    } else {
        found.show(Title::Drift);
    }
    match () {
        () if found.has_failed() => Exit::Failed,
        () if args.detailed_exitcode && found.differs() => Exit::Changes,
        () => Exit::Well,
    }
}
