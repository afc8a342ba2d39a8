//! The link to the running bundle. Each load resolves it once: all files of a graph, and the sources of its resources,
//! belong to one bundle, also while the link moves and the driver still runs the former graph.

use super::{GraphLoader, GraphSource};
use std::path::{Path, PathBuf};

impl GraphSource {
    /// Returns the paths of the graph with the folder of the present bundle in place of the link to it.
    pub(super) fn resolved_paths(&self) -> Vec<PathBuf> {
        let target = std::fs::read_link(&self.bundle_link);
        let resolved = target.ok().and_then(|to| replace_link(&self.paths, &self.bundle_link, &to));
        resolved.unwrap_or_else(|| self.paths.clone())
    }
}

impl GraphLoader {
    /// Returns true if a path of the graph leads through a link: it is this link, or lies below it.
    pub(in crate::workers) fn leads_through(&self, link: &Path) -> bool {
        replace_link(&self.0.graph().paths, link, Path::new("")).is_some()
    }
}

/// Returns the paths with another target of a link in place of the link, however the paths spell its folder; none if no
/// path leads through the link. A relative target is one beside the link.
pub(super) fn replace_link(paths: &[PathBuf], link: &Path, target: &Path) -> Option<Vec<PathBuf>> {
    let real = |path: &Path| {
        let above = path.parent().filter(|above| !above.as_os_str().is_empty());
        let above = above.unwrap_or_else(|| Path::new("."));
        Some((above.canonicalize().ok()?, path.file_name()?.to_owned()))
    };
    let expected = real(link)?;
    let mut is_found = false;
    let mut replace = |path: &PathBuf| {
        let found = path.ancestors().find(|above| real(above).as_ref() == Some(&expected));
        let Some(found) = found else { return path.clone() };
        is_found = true;
        let place = found.with_file_name("").join(target);
        match path.strip_prefix(found) {
            Ok(rest) if !rest.as_os_str().is_empty() => place.join(rest),
            _ => place,
        }
    };
    let replaced = paths.iter().map(&mut replace).collect();
    is_found.then_some(replaced)
}

#[cfg(test)]
mod tests {
    use super::replace_link;
    use std::os::unix::fs::symlink;
    use std::path::{Path, PathBuf};

    /// The link is found also where a path spells its folder in another way.
    #[test]
    fn a_link_is_replaced_in_each_spelling() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |path: &str| folder.path().join(path);
        std::fs::create_dir_all(at("real/bundles/first")).expect("made");
        symlink("real", at("state")).expect("a link");
        symlink("first", at("real/bundles/current")).expect("a link");
        let link = at("state/bundles/current");
        let replaced = |path: PathBuf| {
            replace_link(&[path, at("other.yaml")], &link, Path::new("7-abc"))
                .map(|paths| (paths[0].clone(), paths[1].clone()))
        };
        for (path, expected) in [
            ("state/bundles/current", "state/bundles/7-abc"),
            ("real/bundles/current", "real/bundles/7-abc"),
            ("real/bundles/current/site.yaml", "real/bundles/7-abc/site.yaml"),
            ("real/bundles/current/a/b.yaml", "real/bundles/7-abc/a/b.yaml"),
        ] {
            assert_eq!(replaced(at(path)), Some((at(expected), at("other.yaml"))), "{path}");
        }
        for path in ["real/bundles/first", "real/bundles", "other/current"] {
            assert_eq!(replaced(at(path)), None, "{path}");
        }
    }
}
