//! Queries whose clients have left: the driver does not answer them.

use super::Query;

impl Query {
    /// Returns true if the query changes nothing and nobody waits for its reply any more: the clients of a flood leave.
    pub(super) fn is_abandoned(&self) -> bool {
        match self {
            Self::Status(_, to) => to.is_closed(),
            Self::Metrics(_, to) => to.is_closed(),
            Self::Show(_, to) => to.is_closed(),
            Self::Names(_, _, to) => to.is_closed(),
            Self::List(_, to) => to.is_closed(),
            Self::Selectable(to) => to.is_closed(),
            Self::Selected(_, _, to) => to.is_closed(),
            Self::Inspect { to, .. } => to.is_closed(),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Query;
    use tokio::sync::oneshot;

    /// The requests of a flood wait for the driver when their clients have left.
    #[test]
    fn queries_of_clients_that_left_are_abandoned() {
        let (to, answer) = oneshot::channel();
        let query = Query::Status(10, to);
        assert!(!query.is_abandoned());
        drop(answer);
        assert!(query.is_abandoned());
        let (to, answer) = oneshot::channel();
        drop(answer);
        assert!(!Query::CheckNow(Vec::new(), to).is_abandoned(), "a command is carried out");
    }
}
