//! The real program from outside: what it does to files and processes, what it says, and how it ends.

#[path = "../hung.rs"]
mod hung;
#[path = "../sums.rs"]
mod sums;

mod daemon;
mod forged;
mod history;
mod host;
mod output;
mod process;
mod receiver;
mod terminal;

mod applied;
mod asked;
mod automatic;
mod canaries;
mod clock;
mod cloned;
mod cores;
mod crashes;
mod departed;
mod doctor;
mod drift;
mod examples;
mod execs;
mod failures;
mod faults;
mod fights;
mod hangs;
mod health;
mod interrupted;
mod journald;
mod kept;
mod kept_graph;
mod logged;
mod malformed;
mod mended;
mod noticed;
mod owners;
mod pace;
mod passwords;
mod paused;
mod planned;
mod recorded;
mod refused;
mod reloaded;
mod removed;
mod secrets;
mod secured;
mod settings;
mod shells;
mod shown;
mod silence;
mod socket;
mod spared;
mod started;
mod stopped;
mod swapped;
mod top;
mod trees;
mod unasked;
mod unprivileged;
mod values;
mod workers;
