//! The record of the last requested bundle in the state directory: a restart runs no bundle twice, and no older one.

use super::unpacked_bundles::{current_bundle, folder_of};
use serde::{Deserialize, Serialize};
use std::io;
use std::path::Path;

/// The file with the record.
pub(super) const STATE: &str = "bundle.json";

/// The last bundle that was tried, and the running one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct BundleRecord {
    /// The highest sequence that was tried: it does not run again.
    pub(super) sequence: u64,
    /// The manifest of that sequence; empty if it may be requested again.
    pub(super) digest: String,
    /// The reason for which the graph of that manifest was rejected.
    #[serde(default)]
    pub(super) rejected: Option<String>,
    /// The token of the request of that sequence; none in the record of an older program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) token: Option<u64>,
    /// The sequence and the manifest to which `current` leads, until the driver has taken over their graph.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) switched: Option<(u64, String)>,
    /// The sequence and the manifest that run.
    #[serde(default)]
    pub(super) running: Option<(u64, String)>,
}

impl BundleRecord {
    /// Reads the record of a state directory. A missing one is that of the bundle to which `current` leads, or of a
    /// host without a bundle.
    ///
    /// # Errors
    /// A record that cannot be read.
    pub(super) fn read(directory: &Path) -> io::Result<Self> {
        let record = match std::fs::read_to_string(directory.join(STATE)) {
            Ok(text) => serde_json::from_str(&text)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Self::of_current(directory),
            Err(error) => return Err(error),
        };
        Ok(record.after_interruption(directory))
    }

    /// Returns the record of the bundle to which `current` leads, with the part of the manifest in the folder's name.
    fn of_current(directory: &Path) -> Self {
        let Some((sequence, digest)) = current_bundle(directory) else { return Self::default() };
        Self { sequence, running: Some((sequence, digest)), ..Self::default() }
    }

    /// Returns the record as it is true for the bundle that `current` leads to: the last session may have ended between
    /// the record and the switch of the link.
    fn after_interruption(mut self, directory: &Path) -> Self {
        let current = current_bundle(directory).map(|(sequence, it)| folder_of(sequence, &it));
        let is_current = |(sequence, digest): &(u64, String)| {
            current.as_ref() == Some(&folder_of(*sequence, digest))
        };
        let last = (self.sequence, self.digest.clone());
        let is_decided = self.digest.is_empty()
            || self.rejected.is_some()
            || self.running.as_ref() == Some(&last);
        if !is_decided {
            if is_current(&last) {
                self.switched = Some(last);
                return self;
            }
            // The same bundle runs again.
            self.sequence = self.sequence.saturating_sub(1);
            self.digest.clear();
        }
        self.switched = self.switched.filter(is_current);
        self
    }

    /// Forgets the switch to the last bundle, which may be requested again.
    pub(super) fn forget_switch(&mut self) {
        let switched = self.switched.take();
        if switched.is_some_and(|(_, digest)| digest == self.digest) {
            self.sequence = self.sequence.saturating_sub(1);
            self.digest.clear();
        }
    }

    /// Writes the record to the state directory, whole or not at all.
    ///
    /// # Errors
    /// The failure of the file system.
    pub(super) fn store(&self, directory: &Path) -> io::Result<()> {
        let new = directory.join(format!("{STATE}.new"));
        std::fs::write(&new, serde_json::to_string(self).unwrap_or_default())?;
        std::fs::File::open(&new)?.sync_all()?;
        std::fs::rename(&new, directory.join(STATE))
    }

    /// Returns true if the bundle with this manifest runs, and no other one is about to.
    pub(super) fn runs(&self, manifest: &str) -> bool {
        // After a lost record only a part of the manifest is known.
        let is_this = |digest: &str| !digest.is_empty() && manifest.starts_with(digest);
        self.switched.is_none() && self.running.as_ref().is_some_and(|(_, it)| is_this(it))
    }

    /// Returns true if the bundle with this manifest waits until the driver has taken over its graph.
    pub(super) fn waits_for_swap(&self, manifest: &str) -> bool {
        self.switched.as_ref().is_some_and(|(_, digest)| digest == manifest)
    }

    /// Returns the reason for which a request was rejected; none if it was not.
    pub(super) fn rejection_of(&self, manifest: &str, token: u64) -> Option<&str> {
        let is_of_request = self.token.is_none_or(|it| it == token) && self.digest == manifest;
        self.rejected.as_deref().filter(|_| is_of_request)
    }

    /// Returns the sequence above which a bundle with this manifest runs. A rejected bundle may be requested again.
    pub(super) fn floor(&self, manifest: &str) -> u64 {
        let is_rejected = self.rejected.is_some() && self.digest == manifest;
        self.sequence.saturating_sub(u64::from(is_rejected))
    }
}

#[cfg(test)]
mod tests {
    use super::super::unpacked_bundles::{FOLDER, switch_link};
    use super::*;

    fn record(sequence: u64) -> BundleRecord {
        let digest = "d".repeat(64);
        BundleRecord { sequence, digest, ..BundleRecord::default() }
    }

    fn directory() -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join(FOLDER)).unwrap();
        directory
    }

    fn lead_to(directory: &Path, folder: &str) {
        switch_link(&directory.join(FOLDER), Path::new(folder)).unwrap();
    }

    /// A session that ends between the record and the switch runs the bundle at its next start. One that ends between
    /// the switch and the swap asks for the graph once more.
    #[test]
    fn an_interrupted_bundle_is_not_lost() {
        let directory = directory();
        let directory = directory.path();
        record(7).store(directory).unwrap();
        let last = BundleRecord::read(directory).unwrap();
        assert_eq!((last.sequence, last.digest.as_str(), last.running), (6, "", None));
        lead_to(directory, &folder_of(7, &record(7).digest));
        let last = BundleRecord::read(directory).unwrap();
        assert!(last.waits_for_swap(&record(7).digest) && !last.runs(&record(7).digest));
        let mut forgotten = last;
        forgotten.forget_switch();
        assert_eq!((forgotten.floor(&record(7).digest), forgotten.digest.as_str()), (6, ""));
        let running = BundleRecord { running: Some((7, record(7).digest)), ..record(7) };
        running.store(directory).unwrap();
        assert_eq!(BundleRecord::read(directory).unwrap(), running);
        assert!(running.runs(&record(7).digest));
        let switched = Some((7, record(7).digest));
        let rejected = Some("x".to_owned());
        let last = BundleRecord { rejected, switched, ..record(8) };
        last.store(directory).unwrap();
        assert_eq!(BundleRecord::read(directory).unwrap(), last, "a rejected one stays so");
    }

    #[test]
    fn a_damaged_record_is_no_first_run() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(BundleRecord::read(directory.path()).unwrap(), BundleRecord::default());
        std::fs::write(directory.path().join(STATE), "{").unwrap();
        assert!(BundleRecord::read(directory.path()).is_err());
    }

    /// Without the record no older bundle than the one to which `current` leads runs, and this one counts as running.
    #[test]
    fn a_missing_record_is_that_of_the_current_bundle() {
        let directory = directory();
        lead_to(directory.path(), "first");
        assert_eq!(BundleRecord::read(directory.path()).unwrap(), BundleRecord::default());
        lead_to(directory.path(), &folder_of(7, &record(7).digest));
        let last = BundleRecord::read(directory.path()).unwrap();
        assert_eq!((last.floor("e"), last.switched.is_some()), (7, false));
        assert!(last.runs(&record(7).digest) && !last.runs(&"e".repeat(64)));
    }

    /// The running bundle runs also after a newer one was rejected, and a rejection is that of one request.
    #[test]
    fn a_rejection_is_that_of_one_request() {
        let running = Some((6, "e".repeat(64)));
        let rejected = Some("wrong".to_owned());
        let last = BundleRecord { rejected, token: Some(3), running, ..record(7) };
        let (manifest, running) = (record(7).digest, "e".repeat(64));
        assert!(last.runs(&running) && !last.runs(&manifest));
        assert_eq!(last.rejection_of(&manifest, 3), Some("wrong"));
        assert_eq!(last.rejection_of(&manifest, 4), None);
        assert_eq!(last.rejection_of(&running, 3), None);
        assert_eq!(
            (last.floor(&manifest), last.floor("f")),
            (6, 7),
            "the same bundle may be tried"
        );
        let of_older_program = BundleRecord { token: None, ..last };
        assert_eq!(of_older_program.rejection_of(&manifest, 4), Some("wrong"));
    }
}
