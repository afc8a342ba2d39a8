//! Colours of the output. Text is coloured at its place; standard output drops colours where they are not wanted: in a
//! pipe, with `NO_COLOR`, or with `--color never`. No meaning may depend on a colour alone.

use clap::ValueEnum;

/// The choice of `--color`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ColorWhen {
    /// On a terminal, unless the variable `NO_COLOR` is set.
    #[default]
    Auto,
    /// Always, also in a pipe.
    Always,
    /// Never.
    Never,
}

/// Sets the choice for all later output of this process.
pub(in crate::cli) fn choose_colour(when: ColorWhen) {
    match when {
        ColorWhen::Auto => {}
        ColorWhen::Always => anstream::ColorChoice::Always.write_global(),
        ColorWhen::Never => anstream::ColorChoice::Never.write_global(),
    }
}

/// Returns true if standard output shows colours.
pub(in crate::cli) fn shows_colour() -> bool {
    anstream::AutoStream::choice(&std::io::stdout()) != anstream::ColorChoice::Never
}

/// A colour, named for its meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cli) enum Ink {
    /// A creation, or a converged resource.
    Good,
    /// A change.
    Change,
    /// A destruction, or a failure.
    Bad,
    /// An unknown result, or a held resource.
    Odd,
    /// A heading.
    Title,
    /// Unimportant text.
    Faint,
}

/// Colours a text. The text must not contain control sequences.
pub(in crate::cli) fn paint(ink: Ink, text: &str) -> String {
    let code = match ink {
        Ink::Good => "32",
        Ink::Change => "33",
        Ink::Bad => "31",
        Ink::Odd => "36",
        Ink::Title => "1",
        Ink::Faint => "2",
    };
    format!("\u{1b}[{code}m{text}\u{1b}[0m")
}
