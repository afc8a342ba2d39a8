//! `steadfast man`: manual pages, one for each command, generated from the command line definitions.

use super::examples;
use crate::cli::args;
use crate::cli::exit::Exit;
use crate::cli::output::{count, error, plain, print};
use clap::Command;
use clap_mangen::roff::{Roff, bold, roman};
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// Writes the pages to a directory, which is created if it is missing.
pub(in crate::cli) fn man(args: &args::Man) -> Exit {
    match write_all(&args.directory) {
        Ok(pages) => {
            let directory = plain(&args.directory.display().to_string());
            print(format!("{} in {directory}", count(pages, "page")));
            Exit::Well
        }
        Err(why) => {
            let directory = args.directory.display();
            error(format!("cannot write to {directory}: {why}"), Some("choose another directory"));
            Exit::Failed
        }
    }
}

fn write_all(directory: &Path) -> io::Result<usize> {
    refuse_links_of_others(directory)?;
    std::fs::create_dir_all(directory)?;
    let mut command = super::command().disable_help_subcommand(true);
    command.build();
    write(&command, directory)?;
    let mut pages = 1;
    for verb in command.get_subcommands() {
        write(verb, directory)?;
        pages += 1;
    }
    Ok(pages)
}

fn write(command: &Command, directory: &Path) -> io::Result<()> {
    let examples = examples::of(command.get_name());
    // The examples get a section of their own.
    let command = command.clone().after_long_help(clap::builder::Resettable::Reset);
    let source = concat!("steadfast ", env!("CARGO_PKG_VERSION"));
    let page = clap_mangen::Man::new(command).source(source).manual("steadfast");
    let mut text = Vec::new();
    page.render(&mut text)?;
    if !examples.is_empty() {
        let mut section = Roff::new();
        section.control("SH", ["EXAMPLES"]);
        for (line, does) in examples {
            section.control("TP", []).text([bold(*line)]).text([roman(*does)]);
        }
        section.to_writer(&mut text)?;
    }
    let path = directory.join(page.get_filename());
    // An existing file is removed first: writing into it could follow a link.
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    OpenOptions::new().write(true).create_new(true).open(path)?.write_all(&text)
}

/// Rejects a directory whose path contains a symbolic link of another user.
fn refuse_links_of_others(directory: &Path) -> io::Result<()> {
    let own = rustix::process::geteuid().as_raw();
    for place in std::path::absolute(directory)?.ancestors() {
        if let Ok(found) = place.symlink_metadata()
            && found.is_symlink()
            && ![0, own].contains(&found.uid())
        {
            let why = format!("the link {} belongs to uid {}", place.display(), found.uid());
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
        }
    }
    Ok(())
}
