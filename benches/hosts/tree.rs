//! A fresh folder with directories and the graph of the files that belong into them.

use super::{Bench, Failure};
use serde::Deserialize;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

/// So many files are in one directory.
const EACH: usize = 100;

/// A host in small: where files belong, the graph that says so, and the state of those who hold it.
pub(crate) struct Tree {
    pub(crate) graph: PathBuf,
    pub(crate) state: PathBuf,
}

impl Tree {
    /// Directories and a graph of `count` files; in a chain, each after the one before it.
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

/// The least a program can make of the same text.
#[derive(Deserialize)]
pub(crate) struct Graph {
    /// All resources.
    pub(crate) resources: Resources,
}

/// By kind.
#[derive(Deserialize)]
pub(crate) struct Resources {
    /// Files.
    pub(crate) file: Vec<File>,
}

/// One file.
#[derive(Deserialize)]
pub(crate) struct File {
    /// Its path.
    pub(crate) path: PathBuf,
    /// What it holds.
    pub(crate) content: String,
    /// What it may; octal.
    mode: String,
}

impl File {
    /// Its permission bits.
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
