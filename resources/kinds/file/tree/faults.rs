//! The failures of a walk: each is recorded with its path, the walk goes on, and all are reported at the end.

use crate::failure::Failure;
use crate::host::files::{Fault, Files, Why, printable, said};
use std::path::{Path, PathBuf};

/// The number of failures that are described; the others are counted.
const TOLD: usize = 10;

/// The failures of one walk, in the order of their discovery.
#[derive(Debug, Default)]
pub(in crate::kinds::file) struct TreeFaults {
    first: Vec<(PathBuf, Fault)>,
    count: usize,
    /// All failures are of objects that changed meanwhile.
    only_moved: bool,
}

impl TreeFaults {
    /// Records the failure of an object. A revoked permit ends the walk, so that failure is returned.
    pub(in crate::kinds::file) fn note(&mut self, path: &Path, fault: Fault) -> Result<(), Fault> {
        if matches!(fault.why, Why::Revoked) {
            return Err(fault);
        }
        let moved = matches!(fault.why, Why::Moved);
        self.only_moved = moved && (self.count == 0 || self.only_moved);
        self.count += 1;
        if self.first.len() < TOLD {
            self.first.push((path.to_owned(), fault));
        }
        Ok(())
    }

    /// Returns one line for each described failure, and one for the rest.
    pub(in crate::kinds::file) fn lines(self, files: &Files) -> Vec<String> {
        let more = self.count - self.first.len();
        let told = self.first.into_iter();
        let mut lines: Vec<String> = told
            .map(|(path, fault)| files.failure(fault, &path).what.replace('\n', ": "))
            .collect();
        if more > 0 {
            lines.push(format!("and {more} more"));
        }
        lines
    }

    /// Joins all failures into one of the tree at this path; none if there was no failure.
    pub(in crate::kinds::file) fn into_fault(mut self, files: &Files, top: &Path) -> Option<Fault> {
        if self.count == 0 {
            return None;
        }
        if self.only_moved {
            return Some(Fault::moved());
        }
        if self.count == 1 {
            let (path, fault) = self.first.pop()?;
            let touched = fault.touched;
            return Some(Fault::refused(files.failure(fault, &path)).after(touched));
        }
        let (count, touched) = (self.count, self.first.iter().any(|(_, fault)| fault.touched));
        let mut failure =
            said("hold all below", top, &format!("{count} objects in the tree failed"));
        for line in self.lines(files) {
            failure.what.push_str(&format!("\n{line}"));
        }
        let hint = format!("the rest of {} is managed", printable(top));
        Some(Fault::refused(Failure { hint: Some(hint), ..failure }).after(touched))
    }
}

#[cfg(test)]
mod tests {
    use super::TreeFaults;
    use crate::host::files::{Fault, Files, Why, said};
    use crate::permit::Revoked;
    use std::path::Path;

    #[test]
    fn the_first_faults_are_told_and_the_rest_is_counted() {
        let (files, top) = (Files::default(), Path::new("/top"));
        let mut faults = TreeFaults::default();
        for number in 0..25 {
            let path = top.join(number.to_string());
            let fault = Fault::refused(said("change", &path, "no"));
            faults.note(&path, fault).expect("the walk goes on");
        }
        let failure = files.failure(faults.into_fault(&files, top).expect("some"), top);
        let lines: Vec<&str> = failure.what.lines().collect();
        assert_eq!(lines.len(), 12, "{failure}");
        assert_eq!(lines[0], "cannot hold all below /top: 25 objects in the tree failed");
        assert_eq!(lines[10], "cannot change /top/9: no");
        assert_eq!(lines[11], "and 15 more");
    }

    #[test]
    fn a_single_fault_is_told_by_itself_and_a_revoked_permit_ends_the_walk() {
        let (files, top) = (Files::default(), Path::new("/top"));
        let mut faults = TreeFaults::default();
        faults.note(top, Fault::refused(said("change", top, "no"))).expect("the walk goes on");
        assert!(matches!(faults.note(top, Revoked.into()), Err(Fault { why: Why::Revoked, .. })));
        let fault = faults.into_fault(&files, top).expect("one");
        assert_eq!(files.failure(fault, top).what, "cannot change /top: no");
        assert!(TreeFaults::default().into_fault(&files, top).is_none());
    }

    #[test]
    fn a_moved_entry_is_checked_again() {
        let (files, top) = (Files::default(), Path::new("/top"));
        let mut faults = TreeFaults::default();
        faults.note(top, Fault::moved()).expect("the walk goes on");
        faults.note(top, Fault::moved()).expect("the walk goes on");
        let fault = faults.into_fault(&files, top);
        assert!(matches!(fault, Some(Fault { why: Why::Moved, touched: false })));
    }
}
