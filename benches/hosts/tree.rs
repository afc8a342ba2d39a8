//! A new folder with directories and the graph of the files that belong into them.

use super::{Bench, Failure};
use serde::Deserialize;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The number of files in one directory.
const EACH: usize = 100;

/// A small host: directories for files, their graph, and the state directory.
pub(crate) struct Tree {
    pub(crate) graph: PathBuf,
    pub(crate) state: PathBuf,
}

impl Tree {
    /// Creates directories and a graph of `count` files; a chain has an edge from each file to the next.
    pub(crate) fn new(bench: &Bench, count: usize, chain: bool) -> Result<Self, Failure> {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("tree-{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let folder = bench.folder.path().join(name);
        let directories = count.div_ceil(EACH);
        for directory in 0..directories {
            fs::create_dir_all(folder.join(format!("host/d{directory:04}")))?;
        }
        let graph = folder.join("graph.yaml");
        fs::write(&graph, text(&folder.join("host"), (count, directories), chain)?)?;
        Ok(Self { graph, state: folder.join("state") })
    }
}

fn text(root: &Path, (count, directories): (usize, usize), chain: bool) -> Result<String, Failure> {
    let root = root.display();
    let mut text = String::from("graph: bench\nresources:\n  file:\n");
    for i in 0..count {
        let (directory, a, b, c) = (i % directories.max(1), i * 7919, i * 104_729, i ^ 0x5a5a);
        writeln!(
            text,
            "    - name: f{i:06}\n      path: {root}/d{directory:04}/f{i:06}\n      content: |\n        \
             file-{i:06} {a:016x}{b:016x}{c:016x}{i:016x} {i:022x}\n      state: exists\n      mode: \"0644\""
        )?;
        if chain && i > 0 {
            writeln!(text, "      after: [\"file[f{:06}]\"]", i - 1)?;
        }
    }
    Ok(text)
}

/// The smallest data structure for the same text.
#[derive(Deserialize)]
pub(crate) struct Graph {
    /// All resources.
    pub(crate) resources: Resources,
}

/// The resources by kind.
#[derive(Deserialize)]
pub(crate) struct Resources {
    /// The files.
    pub(crate) file: Vec<File>,
}

/// A file resource.
#[derive(Deserialize)]
pub(crate) struct File {
    /// The path of the file.
    pub(crate) path: PathBuf,
    /// The content of the file.
    pub(crate) content: String,
    /// The permission bits of the file, as octal text.
    mode: String,
}

impl File {
    /// Parses the permission bits.
    pub(crate) fn mode(&self) -> Result<u32, Failure> {
        Ok(u32::from_str_radix(&self.mode, 8)?)
    }
}

impl Graph {
    /// Reads a graph with nothing but `serde_yaml`.
    pub(crate) fn read(path: &Path) -> Result<Self, Failure> {
        Ok(serde_yaml::from_str(&fs::read_to_string(path)?)?)
    }
}
