//! Selectors in requests: they become identities before a request is carried out.

use super::conditions::inactive_details;
use super::handler::DaemonRequestHandler;
use super::places::{run_in_place, wait_for_place};
use crate::api::{Reply, ReplySink, Request};
use crate::driver::Query;
use crate::events::Reader;
use crate::nearest_name::{Limit, with_nearest};
use crate::selection::{LABEL, NoLabels, Selector, Unselected, resolve};
use std::collections::BTreeSet;
use std::sync::Arc;
use tokio::sync::OwnedSemaphorePermit;

/// The maximum number of names considered for a suggestion.
const KNOWN: usize = 100_000;

/// The maximum number of unknown names that get a suggestion.
const SUGGESTED: usize = 8;

/// The work for all suggestions of one request: some tens of milliseconds.
const MOST_WORK: usize = 5_000_000;

/// The greatest number of selectors in one request that are no identities.
const MOST_PATTERNS: usize = 50;

/// The greatest length of such a selector in bytes.
const LONGEST_PATTERN: usize = 512;

/// Refuses selectors whose search among all resources could take long.
fn refuse_long_searches(patterns: &[String]) -> Result<(), Reply> {
    if patterns.len() > MOST_PATTERNS {
        let found = patterns.len();
        let what = format!(
            "expected at most {MOST_PATTERNS} names or patterns without a kind, found {found}: write kind[name]"
        );
        return Err(Reply::Refused(what));
    }
    match patterns.iter().map(String::len).find(|length| *length > LONGEST_PATTERN) {
        Some(found) => {
            let what =
                format!("expected a selector of at most {LONGEST_PATTERN} bytes, found {found}");
            Err(Reply::Refused(what))
        }
        None => Ok(()),
    }
}

/// Returns an unknown name with the nearest known one.
fn suggested(word: &str, known: &[String]) -> String {
    // The name may lack its kind.
    let bare = format!("[{word}]");
    match known.iter().find(|name| name.ends_with(&bare)) {
        Some(name) => format!("{word} (did you mean {name}?)"),
        None => with_nearest(word, known.iter().map(String::as_str)),
    }
}

impl DaemonRequestHandler {
    /// Replaces the selectors of a request by the identities of the running graph. Texts that can only be identities
    /// stay: the request itself judges them, because some of them accept undeclared resources.
    pub(super) async fn expand_selectors(&self, mut ask: Request) -> Result<Request, Reply> {
        match &mut ask {
            Request::Pause { resources, .. }
            | Request::Resume { resources }
            | Request::Retry { resources, .. }
            | Request::Protect { resources }
            | Request::Unprotect { resources }
            | Request::Forget { resources }
            | Request::Check { resources }
            | Request::Select { resources, .. }
            | Request::Diff { resources, .. } => self.expand_all(resources).await?,
            Request::Show { resource }
            | Request::Why { resource }
            | Request::Undo { resource, .. } => {
                self.expand_one(resource).await?;
            }
            _ => {}
        }
        Ok(ask)
    }

    /// Replaces selectors by the identities that they select; each identity stays once.
    async fn expand_all(&self, texts: &mut Vec<String>) -> Result<(), Reply> {
        if texts.iter().all(|text| Selector::is_identity(text)) {
            return Ok(());
        }
        let (plain, patterns): (Vec<String>, Vec<String>) =
            texts.drain(..).partition(|text| Selector::is_identity(text));
        let mut all = self.select(patterns).await?;
        all.extend(plain);
        all.sort_unstable();
        all.dedup();
        *texts = all;
        Ok(())
    }

    /// Replaces a selector by the one identity that it selects.
    async fn expand_one(&self, text: &mut String) -> Result<(), Reply> {
        if Selector::is_identity(text) {
            return Ok(());
        }
        let mut selected = match self.select(vec![text.clone()]).await {
            Err(Reply::Unknown(names)) => match inactive_details(&self.parts.graph, text) {
                Some(inactive) => vec![inactive.status.resource],
                None => return Err(Reply::Unknown(names)),
            },
            selected => selected?,
        };
        if selected.len() > 1 {
            let ambiguous = vec![(text.clone(), selected)];
            return Err(Reply::Ambiguous(
                Unselected { ambiguous, ..Unselected::default() }.candidates(),
            ));
        }
        if let Some(only) = selected.pop() {
            *text = only;
        }
        Ok(())
    }

    /// Returns the identities that selectors select, in order of identity. The driver does not wait for the search.
    async fn select(&self, texts: Vec<String>) -> Result<Vec<String>, Reply> {
        refuse_long_searches(&texts)?;
        let place = self.search_place().await?;
        let mut all = self.of_driver(Query::Selectable).await?;
        let search = move || {
            all.sort_unstable_by(|one, other| one.identity.cmp(&other.identity));
            let identities: Vec<&str> = all.iter().map(|one| one.identity.as_ref()).collect();
            resolve(&texts, &identities, &all)
        };
        let wrong = match run_in_place(place, search).await? {
            Ok(selected) => return Ok(selected),
            Err(wrong) => wrong,
        };
        if wrong.ambiguous.is_empty() {
            return Err(self.unknown(&wrong.unknown).await);
        }
        Err(Reply::Ambiguous(wrong.candidates()))
    }

    /// Waits for the turn of a search.
    async fn search_place(&self) -> Result<OwnedSemaphorePermit, Reply> {
        Ok(wait_for_place(&self.searches).await?)
    }

    /// Returns the reply for unknown resources, with suggestions.
    pub(super) async fn unknown(&self, resources: &[String]) -> Reply {
        // The search for the nearest of many names takes long.
        let (first, others) = resources.split_at(resources.len().min(SUGGESTED));
        let (first, others) = (first.to_vec(), others.to_vec());
        let place = match self.search_place().await {
            Ok(place) => place,
            Err(reply) => return reply,
        };
        let known = self.of_driver(|to| Query::Names(String::new(), KNOWN, to)).await;
        let known = known.unwrap_or_default();
        let search = move || {
            let _limit = Limit::of(MOST_WORK);
            first.iter().map(|word| suggested(word, &known)).collect::<Vec<_>>()
        };
        match run_in_place(place, search).await {
            Ok(found) => Reply::Unknown(found.into_iter().chain(others).collect()),
            Err(error) => error.into(),
        }
    }

    /// Returns the resources that selectors of events select: declared ones, and ones with recorded events. An
    /// identity selects itself. `None` selects all events.
    pub(super) async fn recorded_names(
        &self,
        texts: Vec<String>,
    ) -> Result<Option<Arc<BTreeSet<String>>>, Reply> {
        if texts.is_empty() {
            return Ok(None);
        }
        let (names, patterns): (Vec<String>, Vec<String>) =
            texts.into_iter().partition(|text| Selector::is_identity(text));
        let mut names: BTreeSet<String> = names.into_iter().collect();
        refuse_long_searches(&patterns)?;
        if !patterns.is_empty() {
            let directory = self.parts.state_directory.clone();
            let read =
                move || Reader::open(&directory)?.map_or(Ok(Vec::new()), |log| log.resources());
            let place = self.search_place().await?;
            let recorded = run_in_place(place, read).await?;
            let recorded = recorded.unwrap_or_default();
            for text in patterns {
                names.extend(self.declared_or_recorded(text, &recorded).await?);
            }
        }
        Ok(Some(Arc::new(names)))
    }

    /// Returns the declared and the recorded resources that a selector selects. A word that a declared resource has
    /// selects no other. Labels are not recorded.
    async fn declared_or_recorded(
        &self,
        text: String,
        recorded: &[String],
    ) -> Result<Vec<String>, Reply> {
        let declared = self.select(vec![text.clone()]).await;
        let is_word = matches!(Selector::parse(&text), Selector::Word(_));
        if text.starts_with(LABEL) || matches!(declared, Err(Reply::Ambiguous(_))) {
            return declared;
        }
        let recorded: Vec<&str> = recorded.iter().map(String::as_str).collect();
        let found = resolve(std::slice::from_ref(&text), &recorded, &NoLabels);
        match (declared, found) {
            (Ok(declared), _) if is_word => Ok(declared),
            (Ok(declared), Ok(recorded)) => Ok([declared, recorded].concat()),
            (Err(_), Ok(found)) | (Ok(found), Err(_)) => Ok(found),
            (Err(_), Err(wrong)) if !wrong.ambiguous.is_empty() => {
                Err(Reply::Ambiguous(wrong.candidates()))
            }
            // An unknown name selects no event; the client names it.
            (Err(_), Err(_)) => Ok(vec![text]),
        }
    }

    /// Replies with the status of selected resources.
    pub(super) async fn send_selected(
        &self,
        names: Vec<String>,
        limit: usize,
        replies: &mut dyn ReplySink,
    ) -> Result<(), Reply> {
        match self.of_driver(|to| Query::Selected(names, limit, to)).await? {
            Ok(found) => {
                replies.send_data(found).await;
            }
            Err(strangers) => return Err(self.unknown(&strangers).await),
        }
        Ok(())
    }
}
