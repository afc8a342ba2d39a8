//! Drawing: two lines of header, the table or a pane, one line of footer. Foreign text is escaped.

use super::style::{Tone, of_phase, of_verdict, style};
use super::view::{Pane, Typing, View};
use crate::api::{Inspections, Level, Order, Phase, ResourceStatus};
use crate::cli::client::{describe, differences, headline, line, newer, now, paused, span, words};
use crate::cli::output::plain;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Cell, Clear, Paragraph, Row, Table};

/// Draws the whole screen.
pub(super) fn draw(frame: &mut Frame<'_>, view: &mut View) {
    let parts = [Constraint::Length(3), Constraint::Min(1), Constraint::Length(1)];
    let [head, middle, foot] = Layout::vertical(parts).areas(frame.area());
    view.room = usize::from(middle.height.saturating_sub(1)).max(1);
    view.show_selected();
    frame.render_widget(Paragraph::new(header(view)), head);
    match view.pane {
        Pane::Table => table(frame, middle, view),
        Pane::Details | Pane::Diff | Pane::Plan | Pane::Events | Pane::Help => {
            pane(frame, middle, view);
        }
    }
    frame.render_widget(Paragraph::new(footer(view)), foot);
}

fn header(view: &View) -> Vec<Line<'static>> {
    let title = |text: String, tone| Line::styled(text, style(tone, view.colour));
    let Some(status) = &view.status else {
        let says = view.lost.as_deref().map_or_else(|| "querying the daemon".to_owned(), plain);
        return vec![title(says, if view.lost.is_some() { Tone::Bad } else { Tone::Plain })];
    };
    let c = status.counts;
    let others = [
        (c.waiting + c.delayed, "waiting"),
        (c.running, "running"),
        (c.failed, "failed"),
        (c.held, "held"),
        (c.stuck, "stuck"),
        (c.contended, "contended"),
    ];
    let mut counts = format!("{} ok", c.settled);
    for (number, word) in others.iter().filter(|(number, _)| *number > 0) {
        counts.push_str(&format!(", {number} {word}"));
    }
    counts.push_str(&format!("; up {}", span(status.uptime)));
    let mut lines = vec![title(headline(status), of_verdict(status.verdict)), Line::raw(counts)];
    lines.push(match (&view.lost, &status.pause) {
        (Some(why), _) => title(format!("the data is outdated: {}", plain(why)), Tone::Bad),
        (None, Some(pause)) => title(paused(pause).trim_start().to_owned(), Tone::Odd),
        (None, None) => match newer(status).first() {
            Some(line) => title(line.trim_start().to_owned(), Tone::Odd),
            None => Line::raw(""),
        },
    });
    lines
}

fn table(frame: &mut Frame<'_>, area: Rect, view: &View) {
    let mark = |order, name: &str| {
        if view.order == order { format!("{name}*") } else { name.to_owned() }
    };
    let is_wide = is_wide(area.width);
    let mut titles = vec![mark(Order::State, "STATE"), mark(Order::Name, "RESOURCE")];
    if is_wide {
        titles.extend([mark(Order::Changed, "CHANGED"), mark(Order::Repairs, "REPAIRS")]);
    }
    titles.push("MESSAGE".to_owned());
    let title = style(Tone::Title, view.colour).add_modifier(Modifier::UNDERLINED);
    let titles = Row::new(titles.into_iter().map(Cell::from)).style(title);
    let rows = view.list.rows.iter().zip(view.first..).take(view.room).map(|(resource, at)| {
        let selected = if at == view.selected { Modifier::REVERSED } else { Modifier::empty() };
        row(resource, is_wide, view.colour).style(Style::new().add_modifier(selected))
    });
    let mut widths = vec![Constraint::Length(9), Constraint::Length(name_width(area.width, view))];
    if is_wide {
        widths.extend([Constraint::Length(8), Constraint::Length(8)]);
    }
    widths.push(Constraint::Fill(1));
    frame.render_widget(Table::new(rows, widths).header(titles), area);
}

/// The smallest width of a screen with the columns of the last change and of the repairs.
const WIDE: u16 = 72;

/// Returns true if a screen of this width has room for the columns of the last change and of the repairs.
const fn is_wide(width: u16) -> bool {
    width >= WIDE
}

/// Returns the width of the columns beside names and messages, with the gaps between all columns.
const fn beside_names(width: u16) -> u16 {
    if is_wide(width) { 9 + 8 + 8 + 4 } else { 9 + 2 }
}

/// Returns the width of the names: all of the longest visible name where there is room. Messages have at least half of
/// the room, or as much as they need.
fn name_width(width: u16, view: &View) -> u16 {
    let room = width.saturating_sub(beside_names(width));
    let shown = || view.list.rows.iter().take(view.room);
    let length = |text: &str| u16::try_from(text.chars().count()).unwrap_or(u16::MAX);
    let name = shown().map(|resource| length(&plain(&resource.resource))).max().unwrap_or(0);
    let says = shown().map(|resource| length(&message(resource))).max().unwrap_or(0);
    let for_messages = says.max(7).min(room.div_ceil(2));
    name.max(9).min(room.saturating_sub(for_messages))
}

/// Returns the message of a row; empty for a converged resource.
fn message(resource: &ResourceStatus) -> String {
    if resource.phase == Phase::Settled {
        return String::new();
    }
    let all = line(resource);
    let name = format!("{}: ", plain(&resource.resource));
    all.trim_start().trim_start_matches(name.as_str()).to_owned()
}

fn row(resource: &ResourceStatus, is_wide: bool, colour: bool) -> Row<'static> {
    let changed = resource.ages.repair.map(span).unwrap_or_default();
    let repairs = if resource.repairs == 0 { String::new() } else { resource.repairs.to_string() };
    let says = message(resource);
    let state = Span::styled(phase(resource.phase), style(of_phase(resource.phase), colour));
    let mut cells = vec![Cell::from(state), Cell::from(plain(&resource.resource))];
    if is_wide {
        cells.extend([Cell::from(changed), Cell::from(repairs)]);
    }
    cells.push(Cell::from(says));
    Row::new(cells)
}

fn phase(phase: Phase) -> &'static str {
    match phase {
        Phase::Stuck => "stuck",
        Phase::Failed => "failed",
        Phase::Delayed => "retrying",
        Phase::Contended => "contended",
        Phase::Held => "held",
        Phase::Waiting => "waiting",
        Phase::Running => "running",
        Phase::Settled => "ok",
        Phase::Inactive => "inactive",
    }
}

fn pane(frame: &mut Frame<'_>, area: Rect, view: &mut View) {
    let (title, lines) = match view.pane {
        Pane::Details => (plain(&view.subject), details(view)),
        Pane::Diff => (format!("{}: differences", plain(&view.subject)), diff(view)),
        Pane::Plan => ("pending changes after a resume".to_owned(), diff(view)),
        Pane::Events => ("events, newest first".to_owned(), events(view)),
        Pane::Help | Pane::Table => {
            ("keys".to_owned(), HELP.iter().map(|l| Line::raw(*l)).collect())
        }
    };
    let lines: Vec<Line<'_>> =
        lines.into_iter().flat_map(|line| folded(line, usize::from(area.width))).collect();
    // Scrolling ends at the last line.
    view.scroll = view.scroll.min(lines.len().saturating_sub(view.room));
    let shown: Vec<Line<'_>> = lines.into_iter().skip(view.scroll).take(view.room).collect();
    let heading = style(Tone::Title, view.colour).add_modifier(Modifier::UNDERLINED);
    let mut all = vec![Line::styled(title, heading)];
    all.extend(shown);
    frame.render_widget(Clear, area);
    frame.render_widget(Paragraph::new(all), area);
}

/// The indentation of the further parts of a folded line.
const FOLDED: &str = "    ";

/// Folds a line that is longer than the screen, at blanks where possible: a reader sees the whole message.
fn folded(line: Line<'static>, width: usize) -> Vec<Line<'static>> {
    if line.width() <= width || width <= FOLDED.len() {
        return vec![line];
    }
    let text: String = line.spans.iter().map(|span| &*span.content).collect();
    let style = line.spans.first().map_or(line.style, |span| line.style.patch(span.style));
    let (mut lines, mut rest) = (Vec::new(), text.as_str());
    while !rest.is_empty() {
        let indent = if lines.is_empty() { "" } else { FOLDED };
        let (part, after) = rest.split_at(end_of_part(rest, width - indent.len()));
        lines.push(Line::styled(format!("{indent}{}", part.trim_end()), style));
        rest = after.trim_start();
    }
    lines
}

/// Returns the number of bytes of the first part of a text that is folded: at least one character.
fn end_of_part(text: &str, width: usize) -> usize {
    let (mut used, mut blank) = (0, None);
    // The indentation of a line is no place to fold it.
    let indent = text.len() - text.trim_start().len();
    for (at, letter) in text.char_indices() {
        let end = at + letter.len_utf8();
        used += Span::raw(text.get(at..end).unwrap_or_default()).width();
        if used > width {
            // A word of more than half of the width is cut.
            let blank = blank.filter(|blank| *blank > width / 2);
            return blank.unwrap_or(at).max(text.chars().next().map_or(1, char::len_utf8));
        }
        if letter == ' ' && at > indent {
            blank = Some(end);
        }
    }
    text.len()
}

const HELP: &[&str] = &[
    "up, down, j, k      select or scroll       page up, page down, g, G",
    "enter               show the selected resource: state, dependencies, events",
    "d                   show the differences of the selected resource",
    "e                   show recent events",
    "s                   order by state, name, last change, repairs",
    "/                   filter by name; esc clears the filter",
    "p, r                pause for an hour; resume after a look at the changes",
    "P, R                pause, resume the selected resource only",
    "esc, q              close the innermost view; all views; quit from the table",
];

fn details(view: &View) -> Vec<Line<'static>> {
    let Some(details) = &view.details else { return vec![Line::raw("querying the daemon")] };
    let mut lines: Vec<Line<'static>> = describe(details).into_iter().map(Line::raw).collect();
    lines.push(Line::styled("events, newest first", style(Tone::Title, view.colour)));
    lines.extend(events(view));
    lines
}

fn events(view: &View) -> Vec<Line<'static>> {
    let now = now();
    let lines = view.events.iter().rev().map(|event| {
        let tone = match event.level {
            Level::Error => Tone::Bad,
            Level::Warn => Tone::Odd,
            Level::Info => Tone::Plain,
            Level::Debug => Tone::Faint,
        };
        Line::styled(words(event, now), style(tone, view.colour))
    });
    lines.collect()
}

fn diff(view: &View) -> Vec<Line<'static>> {
    match &view.diff {
        None => vec![Line::raw("looking")],
        Some(Err(why)) => vec![Line::styled(plain(why), style(Tone::Bad, view.colour))],
        Some(Ok(Inspections { items: of, .. })) if of.is_empty() => {
            vec![Line::raw("no differences")]
        }
        Some(Ok(found)) => {
            let lines = found.items.iter().flat_map(differences);
            let tone = |line: &str| match line.trim_start().chars().next() {
                Some('+') => Tone::Good,
                Some('-') => Tone::Bad,
                _ => Tone::Plain,
            };
            let left =
                (found.skipped > 0).then(|| format!("{} more were not checked", found.skipped));
            let all = lines.chain(left);
            all.map(|line| Line::styled(line.clone(), style(tone(&line), view.colour))).collect()
        }
    }
}

fn footer(view: &View) -> Line<'static> {
    let words = match view.typing {
        Typing::Filter => format!("filter: {}_", plain(&view.filter)),
        Typing::Pause => "pause all repairs for an hour? y/n".to_owned(),
        Typing::PauseOne => format!("pause {} for an hour? y/n", plain(&view.subject)),
        Typing::ResumeOne => format!("resume {}? y/n", plain(&view.subject)),
        Typing::Resume => "resume? y/n".to_owned(),
        Typing::Keys => match (&view.notice, view.pane) {
            (Some(notice), _) => plain(notice),
            (None, Pane::Table) => {
                let shown = if view.filter.is_empty() {
                    format!("{} resources", view.list.total)
                } else {
                    format!("{} with `{}`", view.list.total, plain(&view.filter))
                };
                format!("{shown}  enter show  ? keys  q quit  d diff  e events  s sort  / filter")
            }
            (None, _) => "esc back  q table  up/down scroll".to_owned(),
        },
    };
    Line::styled(words, style(Tone::Faint, view.colour))
}
