//! What is on the disk, and what a loss of power leaves of the rest.

use super::Machine;
use super::state::{Ino, Node, ROOT, State, What};
use std::collections::BTreeMap;

/// The entries of a directory at some moment.
type Entries = BTreeMap<Vec<u8>, Ino>;

/// Decides what of the unsynced survives: answers a number below the one given.
pub struct Power<'a>(pub &'a mut dyn FnMut(usize) -> usize);

impl std::fmt::Debug for Power<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Power")
    }
}

/// What was synced, and what happened to directories since.
#[derive(Debug, Default)]
pub(super) struct Journal {
    /// As synced.
    nodes: BTreeMap<Ino, Node>,
    /// The states of each directory since it was synced, oldest first.
    since: BTreeMap<Ino, Vec<Entries>>,
}

impl Journal {
    /// A directory has changed.
    pub(super) fn note(&mut self, directory: Ino, nodes: &BTreeMap<Ino, Node>) {
        if let Some(What::Directory(entries)) = nodes.get(&directory).map(|node| &node.what) {
            self.since.entry(directory).or_default().push(entries.clone());
        }
    }

    /// A file with its content, or a directory with its entries, is on the disk.
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
    /// The power fails: what was synced is there afterwards. Of each directory that was changed since, some state that it has had
    /// meanwhile; of each file, its old content, the new one, a part of the new one, or the new one's beginning with the rest of the old. So
    /// little POSIX promises; common file systems promise more. A rename within a directory has happened or not.
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
            // Held from here on, so that a directory stands in one place only.
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
