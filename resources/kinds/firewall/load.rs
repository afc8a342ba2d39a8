//! The tables in the kernel: compared with the content, and replaced in one transaction.

use super::Rules;
use super::content::{Table, tables_of};
use super::listing::{Listing, listing};
use crate::change::{Change, CheckResult, Difference, Outcome};
use crate::check_request::{Answer, CheckRequest};
use crate::failure::Failure;
use crate::footprint::Footprint;
use crate::host::{Command, End, Finished, Host};
use crate::kind::Restoring;
use crate::kinds::file::unified;
use crate::parts::commands::{command, command_with_input, run_change};
use crate::parts::{WriteFailure, on_thread};
use crate::permit::Permit;
use crate::prior_state::{After, FieldValues, FormerValue};
use crate::resource::{Resource, Traits};
use crate::secrets::escape::short;
use crate::watch_source::WatchSource;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use tokio_util::sync::CancellationToken;

/// Loads the content in an empty network namespace and lists the result, as JSON and as text.
const EXPECTED: &str = r#"
command -v nft >/dev/null || { echo "expected nft, found none: install the package nftables" >&2; exit 1; }
exec unshare --net sh -c 'nft -f - && nft -j list ruleset && printf "\0" && nft -s list ruleset'
"#;

/// Lists the tables of the arguments, pairs of family and name, as JSON and as text; nothing for a table that does not
/// exist.
const LIVE: &str = r#"
command -v nft >/dev/null || { echo "expected nft, found none: install the package nftables" >&2; exit 1; }
tables=$(nft list tables) || exit 1
while [ $# -gt 1 ]; do
  case "
$tables
" in
  *"
table $1 $2
"*)
    nft -j list table "$1" "$2" || exit 1
    printf '\0'
    nft -s list table "$1" "$2" || exit 1
    printf '\0' ;;
  *) printf '\0\0' ;;
  esac
  shift 2
done
exit 0
"#;

/// Lists everything, as JSON and as text.
const LIVE_WHOLE: &str =
    r"nft -j list ruleset && printf '\0' && nft -s list ruleset && printf '\0'";

/// A state of tables: comparable objects and the text for people.
#[derive(Clone, Debug, Default)]
pub(super) struct State {
    listing: Listing,
    text: String,
}

/// The resource that loads the tables.
#[derive(Debug)]
pub(super) struct Loaded {
    pub(super) rules: Rules,
    /// The state that the kernel makes of the content.
    pub(super) expected: Mutex<Option<State>>,
}

impl Loaded {
    /// Returns the state that the kernel makes of the content, from an earlier check unless `again` is set.
    async fn expected(
        &self,
        host: &Host,
        cancel: &CancellationToken,
        again: bool,
    ) -> Result<State, Failure> {
        if !self.rules.present {
            return Ok(State::default());
        }
        let known = self.expected.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(known) = known.filter(|_| !again) {
            return Ok(known);
        }
        let argv = ["sh", "-c", EXPECTED];
        let ask = command_with_input(&argv, self.rules.content.as_str().into());
        let finished = host.query(&ask, cancel).await?;
        if finished.end != End::Exited(0) {
            return Err(rejected(&finished));
        }
        let text = finished.stdout.text();
        let (json, text) = text.split_once('\0').unwrap_or((&text, ""));
        let listing = listing(json, text).filter(|_| !finished.stdout.truncated());
        let listing =
            listing.ok_or_else(|| Failure::new("nft printed a list that cannot be read"))?;
        let foreign = listing.keys().find(|table| !self.rules.tables.contains(table));
        if let Some(table) = foreign {
            let what = format!(
                "the content makes the table {}, and does not name it",
                short(&table.to_string(), 40)
            );
            return Err(Failure::new(what).hint("name every table by a word, without variables"));
        }
        let state = State { listing, text: text.to_owned() };
        *self.expected.lock().unwrap_or_else(PoisonError::into_inner) = Some(state.clone());
        Ok(state)
    }

    /// Reads the live tables that the resource manages.
    async fn live(&self, host: &Host, cancel: &CancellationToken) -> Result<State, Failure> {
        let is_all = self.rules.whole && self.rules.present;
        let mut argv = vec!["sh", "-c", if is_all { LIVE_WHOLE } else { LIVE }, "sh"];
        for Table { family, name } in self.rules.tables.iter().filter(|_| !is_all) {
            argv.extend([family.as_str(), name.as_str()]);
        }
        let finished = host.query(&command(&argv), cancel).await?;
        if finished.end != End::Exited(0) {
            return Err(rejected(&finished));
        }
        if finished.stdout.truncated() {
            return Err(Failure::new("the live tables are too large to compare them (1 MiB)"));
        }
        let text = finished.stdout.text();
        let mut state = State::default();
        let mut parts = text.split_terminator('\0');
        while let (Some(json), Some(text)) = (parts.next(), parts.next()) {
            if !json.trim().is_empty() {
                let listing = listing(json, text);
                let unread = || Failure::new("nft printed a list that cannot be read");
                state.listing.extend(listing.ok_or_else(unread)?);
            }
            state.text.push_str(text);
        }
        Ok(state)
    }

    /// Returns the live and the expected state if they differ.
    async fn difference(
        &self,
        host: &Host,
        cancel: &CancellationToken,
    ) -> Result<Option<(State, State)>, Failure> {
        let expected = self.expected(host, cancel, false).await?;
        let live = self.live(host, cancel).await?;
        if live.listing == expected.listing {
            return Ok(None);
        }
        // An upgrade of nft or of the kernel can change the form of the lists.
        let expected = self.expected(host, cancel, true).await?;
        Ok((live.listing != expected.listing).then_some((live, expected)))
    }

    fn change(live: &State, expected: &State, refresh: bool) -> Change {
        let names = |state: &State| {
            let names: Vec<String> = state.listing.keys().map(ToString::to_string).collect();
            short(&names.join(", "), 200)
        };
        let (from, to) = (names(live), names(expected));
        let aspect = if refresh { "refresh" } else { "tables" };
        let diff = unified(live.text.as_bytes(), expected.text.as_bytes());
        let mut premise_digest = DefaultHasher::new();
        live.text.hash(&mut premise_digest);
        let foreign = |table: &&Table| !expected.listing.contains_key(*table);
        Change {
            differences: vec![Difference { aspect, from, to, diff }],
            destructive: live.listing.keys().any(|table| foreign(&table)),
            premise_digest: premise_digest.finish(),
            creates: live.listing.is_empty() && !expected.listing.is_empty(),
            replaces: false,
            premise: Box::new(()),
        }
    }

    async fn look(&self, host: &Host, ask: CheckRequest) -> Result<CheckResult, Failure> {
        let refresh = ask.refresh && self.rules.present;
        match self.difference(host, &ask.cancel).await? {
            None if !refresh => Ok(CheckResult::Same),
            None => {
                let expected = self.expected(host, &ask.cancel, false).await?;
                Ok(CheckResult::Differs(Self::change(&expected, &expected, true)))
            }
            Some((live, expected)) => {
                // The live kernel can know less than the empty namespace, for example an interface.
                let check = self.nft(&["nft", "-c", "-f", "-"]);
                let finished = host.query(&check, &ask.cancel).await?;
                if finished.end != End::Exited(0) {
                    return Err(rejected(&finished));
                }
                Ok(CheckResult::Differs(Self::change(&live, &expected, false)))
            }
        }
    }

    fn nft(&self, argv: &[&str]) -> Command {
        command_with_input(argv, self.rules.script().into())
    }

    /// Returns the tables as values for the history; no text stands for no table.
    fn recorded(state: &State) -> FieldValues {
        vec![("tables", (!state.listing.is_empty()).then(|| state.text.clone()))]
    }

    async fn make_so(&self, host: &Host, permit: &Permit) -> Outcome {
        let before = match self.live(host, &CancellationToken::new()).await {
            Ok(before) => Self::recorded(&before),
            Err(failure) => return Outcome::Failed { failure, touched: false },
        };
        let Some(keeper) = permit.keeper_of(0) else { return self.load(host, permit).await };
        let recorder = Arc::clone(&keeper);
        // A record waits for the disk.
        let number = match on_thread(host, move |_| recorder.keep_values(before)).await {
            Ok(number) => number,
            Err(failure) => return Outcome::Failed { failure, touched: false },
        };
        let outcome = self.load(host, permit).await;
        if let Ok(after) = self.live(host, &CancellationToken::new()).await {
            let after = Self::recorded(&after);
            drop(on_thread(host, move |_| keeper.settle_values(number, after)).await);
        }
        outcome
    }

    async fn load(&self, host: &Host, permit: &Permit) -> Outcome {
        let loaded = run_change(host, permit, &self.nft(&["nft", "-f", "-"])).await;
        if let Err(WriteFailure { failure, touched }) = loaded {
            return match permit.check() {
                Err(_) => Outcome::Interrupted,
                Ok(()) => Outcome::Failed { failure, touched },
            };
        }
        match self.difference(host, &CancellationToken::new()).await {
            Ok(None) => Outcome::Changed(vec![if self.rules.present {
                "tables loaded".to_owned()
            } else {
                "tables deleted".to_owned()
            }]),
            Ok(Some(_)) => {
                let failure = Failure::new("the tables were loaded, and differ from the content")
                    .hint("another program changes them: see `nft monitor`");
                Outcome::Failed { failure, touched: true }
            }
            Err(failure) => Outcome::Failed { failure, touched: true },
        }
    }
}

/// Builds the resource that loads the tables from before a change, and deletes those that the change made.
pub(super) fn restore(name: &str, values: &[FormerValue]) -> Result<Restoring, Failure> {
    let Some(value) = values.iter().find(|value| value.field == "tables") else {
        return Err(Failure::new("the former tables are not recorded"));
    };
    let content = value.before.clone().unwrap_or_default();
    let named = |text: &str| tables_of(text, false).map_err(|problem| Failure::new(problem.what));
    let mut tables = named(&content)?;
    if let After::Value(after) = &value.after {
        tables.extend(named(after)?);
    }
    tables.sort();
    tables.dedup();
    let by_hand = if value.before.is_some() {
        format!("nft -f {}/{name}.nft", super::FOLDER)
    } else {
        let each = tables.iter().map(|table| format!("nft delete table {table}"));
        each.collect::<Vec<_>>().join("; ")
    };
    let rules = Rules { tables, content, whole: false, present: value.before.is_some() };
    let resource = Arc::new(Loaded { rules, expected: Mutex::default() });
    Ok(Restoring { resource, by_hand })
}

/// Describes a call that nft rejected.
fn rejected(finished: &Finished) -> Failure {
    let mut what = match finished.end {
        End::TimedOut => "nft timed out".to_owned(),
        _ => "nft rejected the content".to_owned(),
    };
    for line in finished.stderr.outer_lines(6, 1) {
        what.push_str(&format!("\n{line}"));
    }
    let hint = "nft needs root; interfaces that may not exist are named by iifname and oifname";
    Failure::new(what).hint(hint)
}

impl Resource for Loaded {
    fn footprint(&self) -> Footprint {
        let argv = ["nft", "monitor"].map(ToOwned::to_owned).to_vec();
        let monitor = Command { argv, ..Command::default() };
        let watch = vec![
            WatchSource::Lines(monitor),
            // Another network namespace of this name, or a lost message, gives no event.
            WatchSource::Polled(PathBuf::from("/proc/net/netfilter")),
        ];
        Footprint { watch, ..Footprint::default() }
    }

    fn traits(&self) -> Traits {
        Traits::confined_command()
    }

    fn check<'a>(&'a self, host: &'a Host, ask: CheckRequest) -> Answer<'a, CheckResult> {
        Box::pin(async move {
            match self.look(host, ask).await {
                Ok(result) => result,
                Err(failure) => CheckResult::Unknown(failure),
            }
        })
    }

    fn apply<'a>(
        &'a self,
        host: &'a Host,
        permit: &'a Permit,
        _change: Change,
    ) -> Answer<'a, Outcome> {
        Box::pin(self.make_so(host, permit))
    }
}
