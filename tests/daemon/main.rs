//! The real program from outside: what it does to files and processes, what it says, and how it ends.

mod daemon;
mod host;
mod output;
mod process;

mod applied;
mod clock;
mod crashes;
mod drift;
mod examples;
mod execs;
mod failures;
mod faults;
mod fights;
mod malformed;
mod noticed;
mod pace;
mod paused;
mod planned;
mod refused;
mod reloaded;
mod secrets;
mod shown;
mod started;
mod stopped;
mod trees;
mod unprivileged;
