//! The exit codes of the program, as in the table of the README.

/// An exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Success.
    Well,
    /// Something failed.
    Failed,
    /// Something was or would be changed (only with `--detailed-exitcode`).
    Changes,
    /// The command line is wrong.
    Usage,
    /// The graph is invalid.
    Graph,
    /// No daemon is running.
    NoDaemon,
    /// State cannot be created.
    State,
    /// Another daemon is running.
    Busy,
    /// A permission is missing.
    Permission,
}

impl Exit {
    /// Returns the number.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::Well => 0,
            Self::Failed => 1,
            Self::Changes => 2,
            Self::Usage => 64,
            Self::Graph => 65,
            Self::NoDaemon => 69,
            Self::State => 73,
            Self::Busy => 75,
            Self::Permission => 77,
        }
    }
}
