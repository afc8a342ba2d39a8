//! The simulated disk: the synced state, and the possible states after a loss of power.

use super::Machine;
use super::state::{Ino, Node, ROOT, State, What};
use std::collections::BTreeMap;

/// The entries of a directory at one time.
type Entries = BTreeMap<Vec<u8>, Ino>;

/// The choices of a loss of power: a function that returns a number below the given one.
pub struct Power<'a>(pub &'a mut dyn FnMut(usize) -> usize);

impl std::fmt::Debug for Power<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Power")
    }
}

/// The synced state of the disk, with the later states of directories.
#[derive(Debug, Default)]
pub(super) struct Journal {
    /// The synced nodes.
    nodes: BTreeMap<Ino, Node>,
    /// The states of each directory since its last sync, oldest first.
    since: BTreeMap<Ino, Vec<Entries>>,
}

impl Journal {
    /// Records a changed state of a directory.
    pub(super) fn note(&mut self, directory: Ino, nodes: &BTreeMap<Ino, Node>) {
        if let Some(What::Directory(entries)) = nodes.get(&directory).map(|node| &node.what) {
            self.since.entry(directory).or_default().push(entries.clone());
        }
    }

    /// Marks a file with its content, or a directory with its entries, as durable.
    pub(super) fn sync(&mut self, nodes: &BTreeMap<Ino, Node>, ino: Ino) {
        if let Some(node) = nodes.get(&ino) {
            self.nodes.insert(ino, node.clone());
            self.since.remove(&ino);
        }
    }

    pub(super) fn sync_all(&mut self, nodes: &BTreeMap<Ino, Node>) {
        self.nodes = nodes.clone();
        self.since.clear();
    }
}

impl Machine {
    /// Simulates a loss of power. Synced states survive. A directory that was changed since gets one of its
    /// states since then. A file gets its old content, the new content, a part of the new content, or the
    /// beginning of the new content with the rest of the old. POSIX promises no more; common file systems do. A
    /// rename within a directory has either happened or not.
    pub fn lose_power(&self, power: &mut Power<'_>) {
        let mut state = self.0.state.borrow_mut();
        let mut left = BTreeMap::new();
        survive(&state, power, (ROOT, ROOT, None), &mut left);
        state.nodes = left;
        let State { durable, nodes, .. } = &mut *state;
        durable.sync_all(nodes);
        state.changes.clear();
        drop(state);
        self.restart();
    }
}

fn survive(
    state: &State,
    power: &mut Power<'_>,
    (ino, above, place): (Ino, Ino, Option<(Ino, Vec<u8>)>),
    left: &mut BTreeMap<Ino, Node>,
) {
    let (old, new) = (state.durable.nodes.get(&ino), state.nodes.get(&ino));
    let Some(newest) = new.or(old) else { return };
    let mut node = match old {
        Some(old) if old != newest && (power.0)(2) == 0 => old.clone(),
        _ => newest.clone(),
    };
    (node.above, node.place) = (above, place);
    match &newest.what {
        What::File(now) => {
            let before = match old.map(|old| &old.what) {
                Some(What::File(content)) => content.as_slice(),
                _ => &[],
            };
            node.what = What::File(torn(before, now, power));
        }
        What::Directory(_) => {
            let before = match old.map(|old| &old.what) {
                Some(What::Directory(entries)) => entries.clone(),
                _ => Entries::new(),
            };
            let since = state.durable.since.get(&ino).map_or(&[][..], Vec::as_slice);
            let chosen = (power.0)(since.len() + 1);
            let mut entries = chosen.checked_sub(1).and_then(|at| since.get(at)).cloned();
            let entries = entries.get_or_insert(before);
            // Inserted at once, so that a directory survives in one place only.
            left.insert(ino, node.clone());
            let is_there = |below: &Ino| state.nodes.contains_key(below);
            let is_directory = |below: &Ino| state.entries(*below).is_some();
            entries.retain(|_, below| {
                is_there(below) && !(is_directory(below) && left.contains_key(below))
            });
            for (name, below) in entries.iter() {
                if !left.contains_key(below) {
                    survive(state, power, (*below, ino, Some((ino, name.clone()))), left);
                }
            }
            node.what = What::Directory(entries.clone());
        }
        What::Link(_) | What::Fifo => {}
    }
    left.insert(ino, node);
}

fn torn(before: &[u8], now: &[u8], power: &mut Power<'_>) -> Vec<u8> {
    if before == now {
        return now.to_vec();
    }
    let cut = (power.0)(now.len() + 1);
    let part = now.get(..cut).unwrap_or(now);
    match (power.0)(4) {
        0 => before.to_vec(),
        1 => now.to_vec(),
        2 => part.to_vec(),
        _ => [part, before.get(cut..).unwrap_or_default()].concat(),
    }
}
