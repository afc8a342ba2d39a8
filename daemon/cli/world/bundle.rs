//! `steadfast bundle`: packs and signs a graph folder.

use crate::cli::args::Bundle;
use crate::cli::exit::Exit;
use crate::cli::output::{error, plain, print};
use crate::world::bundle::{MAX_BUNDLE_BYTES, Manifest, make_bundle, peek_manifest};
use crate::world::records::unix_seconds;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;

/// Runs `steadfast bundle`.
pub(in crate::cli) fn bundle(args: &Bundle) -> Exit {
    match write_bundle(args) {
        Ok(line) => {
            print(line);
            Exit::Well
        }
        Err(why) => {
            error(plain(&why), None);
            Exit::Failed
        }
    }
}

fn write_bundle(args: &Bundle) -> Result<String, String> {
    let failed = |path: &Path, error: io::Error| format!("{}: {error}", path.display());
    let key = std::fs::read_to_string(&args.key).map_err(|error| failed(&args.key, error))?;
    let mut files = BTreeMap::new();
    collect_files(&args.directory, "", &mut files)
        .map_err(|error| failed(&args.directory, error))?;
    if files.is_empty() {
        return Err(format!("{}: expected files of a graph, found none", args.directory.display()));
    }
    let now = unix_seconds();
    let manifest = Manifest {
        schema: 1,
        cluster: args.cluster.clone(),
        hosts: args.hosts.clone(),
        sequence: args.sequence.unwrap_or(now),
        created: now,
        valid_until: now + args.valid,
        files: BTreeMap::new(),
    };
    let bytes = make_bundle(manifest, &files, &key).map_err(|error| error.to_string())?;
    if bytes.len() as u64 > MAX_BUNDLE_BYTES {
        return Err(format!("expected a bundle of at most {} MiB", MAX_BUNDLE_BYTES >> 20));
    }
    let (manifest, digest) = peek_manifest(&bytes).map_err(|error| error.to_string())?;
    std::fs::write(&args.output, &bytes).map_err(|error| failed(&args.output, error))?;
    let short: String = digest.chars().take(12).collect();
    Ok(format!(
        "{}: {} files, sequence {}, generation {short}",
        plain(&args.output.display().to_string()),
        files.len(),
        manifest.sequence
    ))
}

/// Reads the regular files below a folder. Names that begin with a dot are left out; a link is an error.
fn collect_files(
    directory: &Path,
    prefix: &str,
    files: &mut BTreeMap<String, Vec<u8>>,
) -> io::Result<()> {
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        let Some(name) = name.to_str() else {
            return Err(io::Error::other("expected names in UTF-8"));
        };
        if name.starts_with('.') {
            continue;
        }
        let kind = entry.file_type()?;
        if kind.is_dir() {
            collect_files(&entry.path(), &format!("{prefix}{name}/"), files)?;
        } else if kind.is_file() {
            files.insert(format!("{prefix}{name}"), std::fs::read(entry.path())?);
        } else {
            let what = format!("{prefix}{name} is no regular file: a bundle has no links");
            return Err(io::Error::other(what));
        }
    }
    Ok(())
}
