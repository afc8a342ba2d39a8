//! Styles of text. Without colours only attributes of every terminal are used, and no meaning depends on colour alone.

use crate::api::{HostStatus, Phase};
use ratatui::style::{Color, Modifier, Style};

/// The meaning of a text that determines its style.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tone {
    Plain,
    Good,
    Busy,
    Odd,
    Bad,
    Title,
    Faint,
}

pub(super) fn style(tone: Tone, colour: bool) -> Style {
    let plain = Style::new();
    let (ink, modifier) = match tone {
        Tone::Plain => return plain,
        Tone::Good => (Some(Color::Green), Modifier::empty()),
        Tone::Busy => (Some(Color::Cyan), Modifier::empty()),
        Tone::Odd => (Some(Color::Yellow), Modifier::empty()),
        Tone::Bad => (Some(Color::Red), Modifier::BOLD),
        Tone::Title => (None, Modifier::BOLD),
        Tone::Faint => (None, Modifier::DIM),
    };
    let styled = plain.add_modifier(modifier);
    match ink {
        Some(ink) if colour => styled.fg(ink),
        _ => styled,
    }
}

pub(super) fn of_phase(phase: Phase) -> Tone {
    match phase {
        Phase::Stuck | Phase::Failed | Phase::Delayed => Tone::Bad,
        Phase::Contended | Phase::Held => Tone::Odd,
        Phase::Waiting | Phase::Running => Tone::Busy,
        Phase::Settled => Tone::Good,
        Phase::Inactive => Tone::Faint,
    }
}

pub(super) fn of_verdict(verdict: HostStatus) -> Tone {
    match verdict {
        HostStatus::ReadOnly
        | HostStatus::Stuck
        | HostStatus::Failed
        | HostStatus::Failing
        | HostStatus::Contended => Tone::Bad,
        HostStatus::Held | HostStatus::Stopping | HostStatus::Paused => Tone::Odd,
        HostStatus::Starting | HostStatus::Converging => Tone::Busy,
        HostStatus::Converged => Tone::Good,
    }
}
