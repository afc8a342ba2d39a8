//! Reads the fields of an archive.

use super::entries::Destination;
use super::{Archive, Directory, Format, Origin, undo};
use crate::fields::field_values::{Fields, Invalid, Place};
use crate::host::files::is_protected_path;
use crate::parts::download::{Download, read_checksum};
use crate::parts::field_reader::{bounded, normal_path};
use crate::parts::{FieldReader, Managed};
use crate::resource::Resource;
use crate::secrets::escape::short;
use std::path::{Component, PathBuf};
use std::sync::Arc;

/// The ends of names, with their formats.
const ENDS: [(&str, Format); 11] = [
    (".tar", Format::Tar(None)),
    (".tar.gz", Format::Tar(Some("--gzip"))),
    (".tgz", Format::Tar(Some("--gzip"))),
    (".tar.bz2", Format::Tar(Some("--bzip2"))),
    (".tbz2", Format::Tar(Some("--bzip2"))),
    (".tar.xz", Format::Tar(Some("--xz"))),
    (".txz", Format::Tar(Some("--xz"))),
    (".tar.zst", Format::Tar(Some("--zstd"))),
    (".tzst", Format::Tar(Some("--zstd"))),
    (".zip", Format::Zip),
    (".jar", Format::Zip),
];

pub(super) fn build(
    name: &str,
    fields: Fields,
    _place: &Place,
) -> Result<Arc<dyn Resource>, Vec<Invalid>> {
    let mut reader = FieldReader::new(fields);
    let path = reader.path("path", name);
    let is_free = !is_protected_path(&path);
    let problem =
        ("expected a directory of its own, found a protected one", "for example /opt/app");
    reader.require(is_free, "path", problem);
    if !reader.is_present() {
        reader.finish(())?;
        let removal = undo::remove_unchanged(&path);
        return removal.map_err(|failure| vec![Invalid::whole(failure.what)]);
    }
    let archive = read_fields(path, &mut reader);
    let archive = reader.finish(archive)?;
    Ok(Arc::new(Managed::new(Directory(Arc::new(archive)))))
}

fn read_fields(path: PathBuf, reader: &mut FieldReader) -> Archive {
    let origin = read_origin(reader);
    let named = match &origin {
        Origin::File(path, _) => path.display().to_string(),
        Origin::Url(download) => download.name().to_owned(),
    };
    let format = read_format(&named, reader);
    let strip = reader.fields.int("strip").unwrap_or_default();
    let mode = reader.text("mode").unwrap_or_else(|| "0755".to_owned());
    let mode = u32::from_str_radix(&mode, 8).ok().filter(|mode| *mode <= 0o1777);
    let problem = ("expected an octal mode without set-id bits", "for example 0755");
    reader.require(mode.is_some(), "mode", problem);
    let to = Destination {
        path,
        owner: account("owner", reader),
        group: account("group", reader),
        mode: Some(mode.unwrap_or_default()),
        ..Destination::default()
    };
    Archive {
        to,
        origin,
        format,
        strip: u32::try_from(strip).unwrap_or_default(),
        creates: read_creates(reader),
        source_sum: Arc::default(),
        unpacked_sum: Arc::default(),
    }
}

fn read_origin(reader: &mut FieldReader) -> Origin {
    let Some(text) = reader.text("source") else {
        if !reader.fields.has("url") {
            let what = "expected `source` or `url`, found neither";
            let hint = "name an archive on the host, or an address with its checksum";
            reader.reject(Invalid::whole(what).hint(hint));
            return Origin::File(PathBuf::from("/"), None);
        }
        return Origin::Url(Box::new(Download::read(reader)));
    };
    let downloads = ["username", "password", "token", "cacert", "timeout"];
    reader.exclude(&downloads, "belongs to a download: there is no `url`");
    let path = normal_path(&text).unwrap_or_else(|| {
        let what = bounded(format!("expected an absolute path without .., found {text}"));
        reader.reject(Invalid::field("source", what));
        PathBuf::from("/")
    });
    Origin::File(path, read_checksum(reader))
}

fn read_format(named: &str, reader: &mut FieldReader) -> Format {
    let words = [
        ("tar", Format::Tar(None)),
        ("tar.gz", Format::Tar(Some("--gzip"))),
        ("tar.bz2", Format::Tar(Some("--bzip2"))),
        ("tar.xz", Format::Tar(Some("--xz"))),
        ("tar.zst", Format::Tar(Some("--zstd"))),
        ("zip", Format::Zip),
    ];
    let by_end = ENDS.iter().find(|(end, _)| named.ends_with(end)).map(|(_, format)| *format);
    if reader.fields.has("format") {
        return reader.choice("format", &words).unwrap_or(Format::Zip);
    }
    by_end.unwrap_or_else(|| {
        let what = format!("the format of {} is unknown", short(named, 60));
        reader.reject(Invalid::field("format", what).hint("for example format: tar.gz"));
        Format::Zip
    })
}

fn read_creates(reader: &mut FieldReader) -> Option<PathBuf> {
    let path = PathBuf::from(reader.text("creates")?);
    let is_below = path.components().all(|part| matches!(part, Component::Normal(_)));
    let problem = ("expected a path below the directory", "for example bin/app");
    reader.require(is_below && path.components().next().is_some(), "creates", problem);
    Some(path)
}

fn account(field: &'static str, reader: &mut FieldReader) -> Option<String> {
    let name = reader.text(field)?;
    let is_name = !name.is_empty() && !name.starts_with('-') && !name.contains([':', ' ', '/']);
    let problem = ("expected the name or number of an account", "for example www-data");
    reader.require(is_name, field, problem);
    Some(name)
}
