//! Sources that neither exist nor are made by the graph. Only `steadfast check` looks for them: a load reads no
//! sources.

use super::problem::code::Code;
use super::{LoadedGraph, Place, Problem, Vertex};
use std::collections::HashSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use steadfast_resources::{HostObject, KindSet, ResourceId};

/// The shown part of a line, in characters.
const LONGEST: usize = 100;

/// Returns a warning for each declared source that does not exist and that no resource of the graph makes.
#[must_use]
pub fn find_missing_sources(loaded: &LoadedGraph) -> Vec<Problem> {
    let missing: Vec<(&Vertex, PathBuf)> = loaded
        .vertices
        .iter()
        .filter(|vertex| has_source(&vertex.identity, &loaded.kinds))
        .flat_map(|vertex| {
            let reads = vertex.resource.footprint().reads;
            reads.into_iter().filter(|path| is_missing(path)).map(move |path| (vertex, path))
        })
        .collect();
    if missing.is_empty() {
        return Vec::new();
    }
    let made = made_paths(loaded);
    let is_made = |path: &Path| path.ancestors().any(|above| made.contains(above));
    let unmade = missing.into_iter().filter(|(_, path)| !is_made(path));
    unmade.map(|(vertex, path)| warning(loaded, vertex, &path)).collect()
}

/// Returns true for a kind that reads files beside the graph file.
fn has_source(identity: &str, kinds: &KindSet) -> bool {
    let spec = ResourceId::parse(identity).and_then(|id| kinds.find(id.kind));
    spec.is_some_and(|spec| spec.fields.iter().any(|field| field.relative))
}

fn is_missing(path: &Path) -> bool {
    std::fs::metadata(path).is_err_and(|error| error.kind() == ErrorKind::NotFound)
}

fn made_paths(loaded: &LoadedGraph) -> HashSet<PathBuf> {
    let claims = loaded.vertices.iter().flat_map(|vertex| vertex.resource.footprint().claims);
    let paths = claims.filter_map(|claim| match claim.object {
        HostObject::Path(path) => Some(path),
        _ => None,
    });
    paths.collect()
}

fn warning(loaded: &LoadedGraph, vertex: &Vertex, path: &Path) -> Problem {
    let (file, line) = vertex.place;
    let place = loaded.files.get(file).map(|path| {
        let text = loaded.texts.iter().find(|text| text.path == *path);
        let named = text.map(|text| text.display.clone());
        let row = text.and_then(|text| text.content.lines().nth((line as usize).checked_sub(1)?));
        let row: String = row.unwrap_or_default().chars().take(LONGEST).collect();
        let caret =
            row.chars().take_while(|letter| letter.is_whitespace() || *letter == '-').count();
        Place {
            file: named.unwrap_or_else(|| path.display().to_string()),
            line,
            column: u32::try_from(caret + 1).unwrap_or(1),
            width: 1,
            caret: u32::try_from(caret).unwrap_or_default(),
            text: row,
            label: None,
            chain: Vec::new(),
        }
    });
    let what = format!("{}: the source {} does not exist", vertex.identity, path.display());
    let hint = "create the file, or correct its name: a relative name begins at the folder of the graph file";
    Problem::new(Code::Doubt, what).warning().hint(hint).at(place)
}
