//! `steadfast plan`: what `apply` would change. It takes no lock and changes nothing, and runs beside a daemon.

use super::args::Plan;
use super::edges::Edges;
use super::exit::Exit;
use super::text::out_json;
use super::{args, log, read, state, steps, text};
use crate::config::Options;
use crate::store::{Recalled, SqliteStore};
use serde_json::Value;
use steadfast_resources::MintKey;
use tokio::runtime::Runtime;

/// Shows the plan.
pub(super) fn plan(args: &Plan, key: MintKey) -> Exit {
    log::set_up(args::Log::Human, None);
    super::on_runtime(|runtime| once(args, key, runtime))
}

fn once(args: &Plan, key: MintKey, runtime: &Runtime) -> Exit {
    let options = Options { origins: args.explain_edges, ..read::options(&args.graph, true) };
    let loaded = match read::read(&args.graph, &options, args.json) {
        Ok(loaded) => loaded,
        Err(exit) => return exit,
    };
    let directory = state::directory(args.state.state_dir.as_deref());
    let recalled = match SqliteStore::peek(&directory) {
        Ok(recalled) => Recalled { key: SqliteStore::peek_key(&directory), ..recalled },
        Err(error) => {
            // Without it, what runs once is shown as if it had never run.
            text::say(format!("warning: {error}; planned as if nothing had run before"));
            Recalled::default()
        }
    };
    let edges = args.explain_edges.then(|| Edges::of(&loaded));
    let found = steps::find((loaded, &args.graph), recalled, key, runtime);
    if args.json {
        let mut json = found.to_json();
        if let (Some(edges), Value::Object(map)) = (edges, &mut json) {
            map.insert("edges".to_owned(), edges.to_json());
        }
        out_json(&json);
    } else {
        found.show("plan", "to change");
        if let Some(edges) = edges {
            edges.show();
        }
    }
    match () {
        () if found.has_failed() => Exit::Failed,
        () if args.detailed_exitcode && found.differs() => Exit::Changes,
        () => Exit::Well,
    }
}
