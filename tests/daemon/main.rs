//! The tests of the real program from outside: its effects on files and processes, its output, and its exit codes.
//!
//! No test touches anything outside its own folder, apart from mounts and processes that it removes itself. Reading
//! order: `host`, `daemon`, `output` and `process` (the harness), `apply`, `drift`, `failures`, `execs` and `notify`
//! (the basics), then any other by its subject.

mod aliases;
mod apply;
mod auto_edges;
mod client_commands;
mod cloned_machine;
mod contention;
mod deliveries;
mod event_log;
mod event_log_failures;
mod event_words;
mod exit_codes;
mod graph_and_drift;
mod hung_filesystem;
#[path = "../hung_fs.rs"]
mod hung_fs;
mod interrupted_runs;
mod language_tools;
mod last_good_graph;
mod lease_loss;
mod limits;
mod live_conditions;
mod log_fields;
mod log_injection;
mod malformed_input;
mod memory;
mod metrics;
mod non_regular_files;
mod notify;
mod offline_commands;
mod offline_undo;
mod overload;
mod parents_first;
mod path_handover;
mod pause;
mod pause_commands;
mod plan;
mod plan_output;
mod plan_overlay;
mod plan_refused_state;
mod realize;
mod reload;
mod reload_keeps_state;
mod removal;
mod removal_guard;
mod restart_removes_nothing;
mod secret_rotation;
mod selectors;
mod snapshots;
mod startup;
#[path = "../state_checksums.rs"]
mod state_checksums;
mod state_commands;
mod state_import_races;
mod state_maintenance;
mod stop;
mod undeclared_resources;
mod unknown_targets;
mod user_owned_dirs;
mod watched_inputs;
mod webhook_tls;

mod daemon;
mod history;
mod host;
mod output;
mod process;
mod receiver;
mod terminal;
mod threads;

mod canaries;
mod clock;
mod command_history;
mod cores;
mod crashes;
mod doctor;
mod drift;
mod examples;
mod execs;
mod failures;
mod faults;
mod fenced;
mod full_output;
mod hangs;
mod health;
mod journald;
mod log_stalls;
mod passwords;
mod recorders;
mod secrets;
mod settings;
mod shells;
mod socket;
mod state_removed;
mod status_line;
mod top;
mod trees;
mod unprivileged;
mod values;
mod whole_outputs;
mod workers;
