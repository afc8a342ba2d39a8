//! A schedule as a text file: graphs, then steps, one per line. Failing random schedules are written in this form, and
//! replayed.

use crate::environment::World;
use crate::shape::{Shape, ms, v};
use crate::step::Step;
use std::fmt::Write as _;
use std::time::Duration;
use steadfast_engine::{Slots, VertexId};

mod lines;

/// All data needed for a replay.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Schedule {
    pub(crate) slots: Slots,
    pub(crate) one_shot: bool,
    /// The limit of the repair limit, if it is not the engine's default.
    pub(crate) repair_limit: Option<u32>,
    pub(crate) shapes: Vec<Shape>,
    pub(crate) steps: Vec<Step>,
}

impl Schedule {
    /// Plays the schedule, then completes all work. The returned world contains the violations.
    pub(crate) fn play(&self) -> World {
        let mut world = World::new(&self.shapes, self.slots, self.one_shot)
            .with_repair_limit(self.repair_limit);
        for step in &self.steps {
            world.step(step);
            if !world.oracle.books.violations.is_empty() {
                return world;
            }
        }
        crate::generate::come_to_rest(&mut world);
        world
    }

    pub(crate) fn to_text(&self) -> String {
        let slots = self.slots;
        let mut text =
            format!("slots {} {} {}\n", slots.threads, slots.commands, slots.replaceable);
        if self.one_shot {
            text.push_str("one-shot\n");
        }
        if let Some(limit) = self.repair_limit {
            writeln!(text, "repair-limit {limit}").expect("a string takes all");
        }
        for shape in &self.shapes {
            text.push_str("graph\n");
            lines::write_shape(&mut text, shape);
        }
        text.push_str("steps\n");
        for step in &self.steps {
            writeln!(text, "{}", lines::step_line(step)).expect("a string takes all");
        }
        text
    }

    /// Parses a schedule; empty lines and those that begin with `#` are comments.
    pub(crate) fn parse(text: &str) -> Self {
        let slots = Slots { threads: 1, commands: 1, replaceable: 0 };
        let (one_shot, repair_limit) = (false, None);
        let mut schedule =
            Self { slots, one_shot, repair_limit, shapes: Vec::new(), steps: Vec::new() };
        for line in text.lines().map(str::trim) {
            let words: Vec<&str> = line.split_whitespace().collect();
            match words.as_slice() {
                [] | ["steps"] => {}
                [first, ..] if first.starts_with('#') => {}
                ["slots", threads, commands, spare] => {
                    schedule.slots = Slots {
                        threads: number(threads),
                        commands: number(commands),
                        replaceable: number(spare),
                    };
                }
                ["one-shot"] => schedule.one_shot = true,
                ["repair-limit", limit] => schedule.repair_limit = Some(number(limit)),
                ["graph"] => schedule.shapes.push(Shape::default()),
                [verb @ ("vertex" | "edge" | "notify" | "semaphore"), rest @ ..] => {
                    let shape = schedule.shapes.last_mut().expect("a graph before its vertices");
                    lines::read_shape(shape, verb, rest);
                }
                words => schedule.steps.push(lines::read_step(words)),
            }
        }
        schedule
    }
}

/// Parses a number, or fails the test.
fn number<T: std::str::FromStr>(word: &str) -> T {
    T::from_str(word).ok().unwrap_or_else(|| panic!("expected a number, found {word:?}"))
}

fn vertex(word: &str) -> VertexId {
    v(number(word))
}

fn length(word: &str) -> Duration {
    ms(number(word))
}

fn millis(length: Duration) -> u128 {
    length.as_millis()
}
