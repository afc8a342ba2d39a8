//! Bugs that were planted by hand, and not derived from the list of rules.

use crate::{Breakage, broken};

pub(crate) const ALL: &[Breakage] = &[
    broken(
        (
            "planted-each-mark-is-a-new-one",
            "E-1, E-4",
            "a second event moves the mark of the first",
        ),
        "scheduling/readiness.rs",
        "        if newly {\n            vertex.dirty_since = stamp;\n            \
         self.stamp = stamp;\n            self.back_poke(id);",
        "        if newly || vertex.phase == Phase::Resting {\n            \
         vertex.dirty_since = stamp;\n            self.stamp = stamp;\n            \
         self.back_poke(id);",
    ),
    broken(
        ("planted-the-answer-crosses-the-cancel", "E-16", "begun after its cancel, it applies"),
        "runs/durable_begin.rs",
        "            self.ended(run, Outcome::Failed { touched: false });\n            return;\n        \
         }\n        now.station = Station::Applying;",
        "            self.touch(id);\n            return;\n        \
         }\n        now.station = Station::Applying;",
    ),
    broken(
        (
            "planted-stamps-begin-anew",
            "E-9",
            "after a restart the counter starts below what is owed",
        ),
        "swaps/replacement.rs",
        "self.stamp = self.stamp.max(stamp);",
        "",
    ),
    broken(
        ("planted-durable-in-any-order", "E-10", "the later run is told before the earlier one"),
        "runs/steps.rs",
        "Some((_, (_, earlier))) => earlier.extend(notices),",
        "Some(_) => self.out.extend(notices.into_iter().map(Action::Notify)),",
    ),
    broken(
        ("planted-thawed-and-left", "E-17", "what a dropped graph had frozen is not looked at"),
        "swaps/waiting_graph.rs",
        "vertex.frozen = false;\n                self.touch(id);",
        "vertex.frozen = false;",
    ),
    broken(
        ("planted-a-number-given-anew", "E-9", "who has left is owed by runs in progress"),
        "swaps/replacement.rs",
        "run.owes.retain(|child| gone.binary_search(child).is_err());",
        "run.owes.retain(|child| gone.binary_search(child).is_err() || !gone.is_empty());",
    ),
    broken(
        ("planted-a-slot-is-kept-by-a-ghost", "E-6", "the slot of the new kind is given back"),
        "scheduling/admission.rs",
        "let lane = self.lanes.of(run.executor);",
        "let lane = self.lanes.of(vertex.traits.executor);",
    ),
    broken(
        ("planted-failed-before-it-owes", "E-10, E-3", "who fails and owes back-pokes itself"),
        "runs/steps.rs",
        "        self.owe(id, &owes, stamp, run.station);\n        \
         let (permitted, station) = (run.station == Station::Applying, run.station);\n        \
         // A failed retry repairs nothing. Events of an adversary count, and those that the command itself made do \
         not.\n        \
         let counts = permitted && run.causes.has(Causes::EVENT) && !self.is_own_echo(id);\n        \
         let mut notices: Vec<Notice> =\n            \
         permitted.then_some(Notice::Ran(id, run.id, outcome)).into_iter().collect();\n        \
         let record = Record { owes, ..record(id, &run, (outcome, stamp)) };\n        \
         if self.must_ask(id, run.stamp) {\n            \
         notices.insert(0, self.ask(id, &run, counts));\n        \
         } else {\n            \
         if counts {\n                \
         // The change was undone during the run; its failure does not make that less of a contention.\
         \n                \
         notices.extend(self.record_outcome(id, &run, true));\n            \
         }\n            \
         notices.push(self.fail(id));\n        \
         }\n        \
         self.close(record, station, notices);",
        "        let (permitted, station) = (run.station == Station::Applying, run.station);\n        \
         // A failed retry repairs nothing. Events of an adversary count, and those that the command itself made do \
         not.\n        \
         let counts = permitted && run.causes.has(Causes::EVENT) && !self.is_own_echo(id);\n        \
         let mut notices: Vec<Notice> =\n            \
         permitted.then_some(Notice::Ran(id, run.id, outcome)).into_iter().collect();\n        \
         let record = Record { owes, ..record(id, &run, (outcome, stamp)) };\n        \
         if self.must_ask(id, run.stamp) {\n            \
         notices.insert(0, self.ask(id, &run, counts));\n        \
         } else {\n            \
         if counts {\n                \
         // The change was undone during the run; its failure does not make that less of a contention.\
         \n                \
         notices.extend(self.record_outcome(id, &run, true));\n            \
         }\n            \
         notices.push(self.fail(id));\n        \
         }\n        \
         let owes = record.owes.clone();\n        \
         self.owe(id, &owes, stamp, station);\n        \
         self.close(record, station, notices);",
    ),
];
