//! A directory that several resources put their files into: it is made if it is missing, and claimed by none.

use crate::change::{Change, CheckResult, Difference, Outcome};
use crate::check_request::{Answer, CheckRequest};
use crate::dependency::Need;
use crate::footprint::Footprint;
use crate::host::Host;
use crate::host::files::{Attributes, Fault, Files, NewLists, Why};
use crate::permit::Permit;
use crate::prior_state::Loss;
use crate::resource::Resource;
use crate::watch_source::WatchSource;
use std::path::PathBuf;

/// The mode of a new directory.
const MODE: u32 = 0o755;

/// A resource that makes a missing directory. An existing object at the path stays as it is.
#[derive(Debug)]
pub(crate) struct ParentDirectory(pub(crate) PathBuf);

impl ParentDirectory {
    fn exists(&self, files: &Files) -> Result<bool, Fault> {
        let Some(spot) = files.open_entry(&self.0)? else {
            return Err(Fault::refused(Files::no_directory(&self.0)));
        };
        Ok(spot.look()?.is_some())
    }

    fn make(&self, files: &Files, permit: &Permit) -> Result<bool, Fault> {
        let Some(spot) = files.open_entry(&self.0)? else {
            return Err(Fault::refused(Files::no_directory(&self.0)));
        };
        if spot.look()?.is_some() {
            return Ok(false);
        }
        let losing =
            Loss { content: true, secret: false, purged: false, edited: None, what: "created" };
        let noted = spot.note(permit, None, losing)?;
        let wanted = Attributes { mode: Some(MODE), ..Attributes::default() };
        match noted.after(files.make_directory(permit, &spot, wanted, NewLists::Inherited)) {
            // Another resource with a file in the directory has made it meanwhile.
            Err(Fault { why: Why::Moved, .. }) if self.exists(files)? => Ok(false),
            made => made.map(|_| true),
        }
    }
}

impl Resource for ParentDirectory {
    fn footprint(&self) -> Footprint {
        Footprint {
            requires: vec![Need::path(self.0.clone(), "contains the file")],
            watch: vec![WatchSource::Path { path: self.0.clone(), below: false }],
            uses_only_files: true,
            ..Footprint::default()
        }
    }

    fn check<'a>(&'a self, host: &'a Host, _ask: CheckRequest) -> Answer<'a, CheckResult> {
        Box::pin(async move {
            match self.exists(host.files()) {
                Ok(true) => CheckResult::Same,
                Ok(false) => {
                    let (from, to) = (String::new(), self.0.display().to_string());
                    CheckResult::Differs(Change {
                        creates: true,
                        ..Change::of(vec![Difference { aspect: "directory", from, to, diff: None }])
                    })
                }
                Err(fault) => CheckResult::Unknown(host.files().failure(fault, &self.0)),
            }
        })
    }

    fn apply<'a>(
        &'a self,
        host: &'a Host,
        permit: &'a Permit,
        _change: Change,
    ) -> Answer<'a, Outcome> {
        Box::pin(async move {
            match self.make(host.files(), permit) {
                Ok(true) => Outcome::Changed(vec!["directory".to_owned()]),
                Ok(false) => Outcome::Unchanged,
                Err(Fault { why: Why::Revoked, .. }) => Outcome::Interrupted,
                Err(fault) => {
                    let touched = fault.touched;
                    Outcome::Failed { failure: host.files().failure(fault, &self.0), touched }
                }
            }
        })
    }
}
