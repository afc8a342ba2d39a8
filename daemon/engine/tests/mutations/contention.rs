//! Breakages of contention (E-20), of the repair limit and of `realize`.

use super::{Breakage, broken};

pub(super) const ALL: &[Breakage] = &[
    broken(
        ("e20-never-recognised", "E-20", "however often it is undone, it is no contention"),
        "contention/record.rs",
        "let enough = self.rounds.len() >= Meta::REVERSALS;",
        "let enough = false;",
    ),
    broken(
        ("e20-the-wait-does-not-grow", "E-20", "repairs never become less frequent"),
        "contention/repair_delay.rs",
        "contention.doublings = contention.doublings.saturating_add(1);",
        "contention.doublings = 0;",
    ),
    broken(
        ("e20-the-wait-has-no-cap", "E-20", "a contention may end in a wait of days"),
        "contention/repair_delay.rs",
        "Conflict::Backoff => doubled.min(Meta::LONGEST_BACKOFF),",
        "Conflict::Backoff => doubled,",
    ),
    broken(
        (
            "e20-who-gives-way-is-told-of-once",
            "E-20",
            "a contention with one who gives way has no summary",
        ),
        "contention/repair_delay.rs",
        "lasts = contention.next_notice(id, now);",
        "lasts = None;",
    ),
    broken(
        ("e20-children-starve", "E-20, E-12", "who is put off blocks those below"),
        "scheduling/pokes.rs",
        "let put_off = matches!(self.place, Place::Limit(_) | Place::Backoff(_));",
        "let put_off = matches!(self.place, Place::Limit(_));",
    ),
    broken(
        ("e20-who-is-asked-waits", "E-20", "an operator's request waits for the contention"),
        "contention/repair_delay.rs",
        "if vertex.causes.has(ASKED.and(Causes::OWED)) {",
        "if vertex.causes.has(Causes::LOAD.and(Causes::OWED)) {",
    ),
    broken(
        (
            "e20-a-value-is-taken-for-drift",
            "E-20",
            "who receives a value often is said to be undone",
        ),
        "contention/recognition.rs",
        "!run.causes.has(ASKED) && !self.one_shot",
        "!run.causes.has(Causes::LOAD.and(Causes::OPERATOR)) && !self.one_shot",
    ),
    broken(
        ("e20-muted-for-ever", "E-20, E-4", "its events are never wanted again"),
        "contention/repair_delay.rs",
        "self.out.push(Action::Unmute(id));",
        "",
    ),
    broken(
        ("e20-it-never-ends", "E-20", "a quiet that is long enough does not end it"),
        "contention/repair_delay.rs",
        "contention.ends_at <= now) {",
        "contention.ends_at > now) {",
    ),
    broken(
        (
            "e20-the-repair-limit-holds-for-ever",
            "E-20",
            "nothing is repaired after the repair limit",
        ),
        "contention/global_limit.rs",
        "self.repair_limiter.until = None;",
        "",
    ),
    broken(
        ("e17-realize-is-forgotten", "E-17", "what was never right goes without a run"),
        "swaps/waiting_graph.rs",
        "all.filter(|id| runs(**id) || gone(**id) && self.is_to_realize(**id))",
        "all.filter(|id| runs(**id) || gone(**id) && false)",
    ),
    broken(
        ("e20-what-is-remade-is-drift", "E-20", "who rotates a secret is said to undo something"),
        "contention/recognition.rs",
        "if run.remade {",
        "if false {",
    ),
    broken(
        (
            "e20-what-is-remade-is-not-bounded",
            "E-20",
            "a file that is its own secret writes itself for ever",
        ),
        "runs/steps.rs",
        "run.remade = true;",
        "run.causes.add(Causes::VALUE);",
    ),
    broken(
        (
            "e20-a-tick-is-a-contention",
            "E-20",
            "a timer is throttled by the handler that it notifies",
        ),
        "contention/recognition.rs",
        "self.vertex(id).filter(|v| v.traits.repeat != RunPolicy::Events)",
        "self.vertex(id)",
    ),
    broken(
        (
            "e20-one-long-run-sets-off-each",
            "E-20",
            "a command that runs all the while is blamed for each reversal",
        ),
        "contention/attribution.rs",
        "*begun > since && *other != id",
        "*begun >= Stamp::NEVER && *other != id",
    ),
    broken(
        ("e20-a-chain-is-a-contention", "E-20", "a command that another sets off is throttled"),
        "contention/attribution.rs",
        "return self.is_set_off_by(other, id);",
        "return true;",
    ),
    broken(
        ("e20-a-loop-of-three-goes-on", "E-20", "commands that go round over others are not seen"),
        "contention/attribution.rs",
        "next.push(*by);",
        "",
    ),
    broken(
        (
            "e20-a-deed-is-never-let-go",
            "E-20",
            "a deed that others set off is throttled, once it was taken for a contention",
        ),
        "contention/repair_delay.rs",
        "if deed && !self.is_ours_to_blame(id) {",
        "if false {",
    ),
    broken(
        ("e20-who-was-blamed-once", "E-20", "who was taken for the other party is it for ever"),
        "contention/repair_delay.rs",
        "contention.party = party.or_else(|| deed.then_some(Culprit::Foreign));",
        "contention.party = contention.party.or(party);",
    ),
    broken(
        ("e20-each-other-party-is-told", "E-20", "a contention with two is a line for each repair"),
        "contention/record.rs",
        "(other && (late || !self.renamed), other)",
        "(other, other)",
    ),
    broken(
        (
            "e20-a-refresh-repairs",
            "E-20",
            "what follows from a change that was asked for is a repair",
        ),
        "runs/owed_refreshes.rs",
        "vertex.intended = run.class == Class::Intentional;",
        "vertex.intended = false;",
    ),
    broken(
        ("e20-remade-for-good", "E-20", "later drift is taken for what an earlier run was made of"),
        "scheduling/admission.rs",
        "remade: false,",
        "remade: vertex.intended,",
    ),
    broken(
        (
            "e20-remade-passes-the-repair-limit",
            "E-20",
            "what is made of something else is changed under the repair limit",
        ),
        "runs/steps.rs",
        "if self.suspended_until(id).is_some() && self.is_repair(id) {",
        "if self.suspended_until(id).is_some() && self.is_repair(id) && class != crate::Class::Intentional {",
    ),
    broken(
        (
            "e20-remade-refreshes-nobody",
            "E-20, E-9",
            "what is made of something else owes no refresh",
        ),
        "runs/steps.rs",
        "let owes = self.notified(id);\n        let Some(run)",
        "let quiet = class == crate::Class::Intentional && self.is_repair(id);\n        let owes = if quiet { Vec::new() } else { self.notified(id) };\n        let Some(run)",
    ),
    broken(
        (
            "e20-remade-disturbs",
            "E-20, E-18",
            "a poll that is told what it is made of is no poll any more",
        ),
        "runs/steps.rs",
        "if let Some((_, run)) = self.run_of(run) {\n            run.remade = true;",
        "if let Some((id, run)) = self.run_of(run) {\n            run.remade = true;\n            run.quiet = false;\n            self.touch(id);",
    ),
    broken(
        (
            "e20-what-follows-what-is-remade-is-drift",
            "E-20",
            "who is refreshed by what is made of something else is said to be undone",
        ),
        "runs/owed_refreshes.rs",
        "vertex.intended = run.class == Class::Intentional;",
        "vertex.intended = run.class == Class::Intentional && !run.remade;",
    ),
];
