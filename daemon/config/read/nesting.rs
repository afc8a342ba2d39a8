//! The check of nested paths: a graph that declares something below a regular file is rejected.

use crate::config::checks::Validator;
use crate::config::problem::code::Code;
use crate::config::problem::{Problem, quoted};
use std::collections::HashMap;
use std::os::unix::ffi::OsStrExt as _;
use steadfast_resources::HostObject;

impl Validator<'_> {
    /// Reports each resource whose path lies below the path of a declared regular file.
    pub(in crate::config) fn check_nesting(&mut self) {
        let is_file = |vertex: usize| self.vertices.get(vertex).is_some_and(|it| it.roles.is_file);
        let paths = self.claims.iter().filter_map(|(object, vertex)| match object {
            HostObject::Path(path) => Some((path.as_os_str().as_bytes(), *vertex)),
            _ => None,
        });
        let paths: Vec<(&[u8], usize)> = paths.collect();
        let files: HashMap<&[u8], usize> =
            paths.iter().filter(|(_, vertex)| is_file(*vertex)).copied().collect();
        let nested = paths.iter().filter_map(|(path, below)| {
            let (path, file) = file_above(path, &files)?;
            Some((*below, file, String::from_utf8_lossy(path).into_owned()))
        });
        let mut nested: Vec<(usize, usize, String)> = nested.collect();
        nested.sort_unstable();
        for (below, file, path) in nested {
            self.report_nesting(below, (file, &path));
        }
    }

    fn report_nesting(&mut self, below: usize, (file, path): (usize, &str)) {
        let (Some(below), Some(file)) = (self.vertices.get(below), self.vertices.get(file)) else {
            return;
        };
        let (name, other) = (quoted(&file.identity), quoted(&below.identity));
        let what = format!("`{name}` is a file: no path can lie below it");
        let hint =
            format!("`{other}` lies below it; for a directory, write path: {}/", quoted(path));
        let problem = Problem::new(Code::Claim, what)
            .hint(hint)
            .at(self.atlas.labelled(below.at, "declared below the file here"))
            .at(self.atlas.labelled(file.at, "the file is declared here"));
        self.problems.push(problem);
    }
}

/// Returns the declared regular file above a path, if there is one.
fn file_above<'p>(path: &'p [u8], files: &HashMap<&[u8], usize>) -> Option<(&'p [u8], usize)> {
    let mut above = path;
    while let Some(end) = above.iter().rposition(|byte| *byte == b'/').filter(|end| *end > 0) {
        above = above.get(..end)?;
        if let Some(file) = files.get(above) {
            return Some((above, *file));
        }
    }
    None
}
