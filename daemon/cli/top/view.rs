//! The state of the view: the data of the daemon, the visible part, and the effect of keys. A value without terminal or
//! socket.

use super::poller::{About, PollQuery, PollResult};
use crate::api::{self, Data, Inspections, List, Order, Request, ResourceDetails, Status};
use ratatui::crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

/// The length of a pause requested here, in seconds.
const PAUSE: u64 = 3600;

/// The number of events that are searched.
const LATELY: usize = 500;

/// The pane that covers the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pane {
    /// No pane: the table itself.
    Table,
    /// All data about one resource.
    Details,
    /// The differences of one resource.
    Diff,
    /// The changes that a resume would make.
    Plan,
    /// The last events.
    Events,
    /// The list of keys.
    Help,
}

/// The meaning of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Typing {
    /// Commands.
    Keys,
    /// Letters of the filter.
    Filter,
    /// The answer to the question to pause the daemon.
    Pause,
    /// The answer to the question to pause one resource.
    PauseOne,
    /// The answer to the question to resume the daemon.
    Resume,
    /// The answer to the question to resume one resource.
    ResumeOne,
}

/// The next action of the program.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Only draw.
    Nothing,
    /// Request all shown data.
    Ask,
    /// Send a command.
    Order(PollQuery),
    /// Leave.
    Leave,
}

/// The state of the view.
#[derive(Debug)]
pub(super) struct View {
    pub(super) colour: bool,
    pub(super) status: Option<Status>,
    pub(super) list: List,
    pub(super) order: Order,
    pub(super) filter: String,
    /// The selected row, counted in the whole list.
    pub(super) selected: usize,
    /// The first visible row.
    pub(super) first: usize,
    /// The number of visible rows, known after drawing.
    pub(super) room: usize,
    pub(super) pane: Pane,
    /// The panes below the open one, the innermost last.
    below: Vec<Pane>,
    pub(super) typing: Typing,
    pub(super) details: Option<ResourceDetails>,
    pub(super) events: Vec<api::Event>,
    pub(super) diff: Option<Result<Inspections, String>>,
    /// The resource of details and diff.
    pub(super) subject: String,
    /// The scroll position of the pane.
    pub(super) scroll: usize,
    /// The reason why the daemon does not answer; the shown data is then old.
    pub(super) lost: Option<String>,
    /// The result of the last command.
    pub(super) notice: Option<String>,
}

impl View {
    pub(super) fn new(colour: bool) -> Self {
        Self {
            colour,
            status: None,
            list: List { rows: Vec::new(), total: 0 },
            order: Order::State,
            filter: String::new(),
            selected: 0,
            first: 0,
            room: 20,
            pane: Pane::Table,
            below: Vec::new(),
            typing: Typing::Keys,
            details: None,
            events: Vec::new(),
            diff: None,
            subject: String::new(),
            scroll: 0,
            lost: None,
            notice: None,
        }
    }

    /// Returns the queries for the shown data.
    pub(super) fn questions(&self) -> Vec<PollQuery> {
        let mut all = vec![
            PollQuery { about: About::Status, ask: Request::Status { limit: 0 } },
            self.ask_list(),
        ];
        if self.pane == Pane::Details {
            let resource = self.subject.clone();
            all.push(PollQuery { about: About::Details, ask: Request::Show { resource } });
            all.push(self.ask_events(Some(self.subject.clone())));
        }
        if self.pane == Pane::Events {
            all.push(self.ask_events(None));
        }
        all
    }

    fn ask_list(&self) -> PollQuery {
        let (filter, from, limit) = (self.filter.clone(), self.first, self.room);
        let order = self.order;
        PollQuery { about: About::List, ask: Request::List { filter, order, from, limit } }
    }

    #[expect(clippy::unused_self, reason = "one of the questions of a view")]
    fn ask_events(&self, resource: Option<String>) -> PollQuery {
        PollQuery { about: About::Events, ask: Request::lately(resource, LATELY) }
    }

    /// Takes the result of a request.
    pub(super) fn hear(&mut self, told: PollResult) {
        let PollResult { about, ask, answer } = told;
        let pieces = match answer {
            Ok(pieces) => pieces,
            Err(why) if about == About::Order => {
                self.notice = Some(why);
                return;
            }
            Err(why) if about == About::Diff => {
                self.diff = Some(Err(why));
                return;
            }
            Err(why) => {
                self.lost = Some(why);
                return;
            }
        };
        match about {
            About::Status => {
                self.lost = None;
                self.status = first(pieces);
            }
            About::List if ask == self.ask_list().ask => self.take_list(first(pieces)),
            About::Details => self.details = first(pieces).or_else(|| self.details.take()),
            About::Events => {
                self.events =
                    pieces.into_iter().filter_map(|piece| piece.try_into().ok()).collect();
            }
            About::Diff => {
                let found = first(pieces);
                self.diff = Some(found.ok_or_else(|| "the reply cannot be read".to_owned()));
            }
            About::Order => self.notice = Some("done".to_owned()),
            About::List => {}
        }
    }

    fn take_list(&mut self, list: Option<List>) {
        let Some(list) = list else { return };
        self.list = list;
        self.selected = self.selected.min(self.list.total.saturating_sub(1));
        // The list ends at the last line of the screen.
        self.first = self.first.min(self.list.total.saturating_sub(self.room));
    }

    /// Handles a key or a change of size.
    pub(super) fn react(&mut self, event: &Event) -> Next {
        match event {
            Event::Key(key) if key.kind != KeyEventKind::Release => self.key(*key),
            Event::Resize(..) => Next::Ask,
            _ => Next::Nothing,
        }
    }

    fn key(&mut self, key: KeyEvent) -> Next {
        if key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c') {
            return Next::Leave;
        }
        self.notice = None;
        match self.typing {
            Typing::Filter => self.type_filter(key.code),
            Typing::Pause | Typing::PauseOne | Typing::Resume | Typing::ResumeOne => {
                self.confirm(key.code)
            }
            Typing::Keys if self.pane == Pane::Table => self.in_table(key.code),
            Typing::Keys => self.in_pane(key.code),
        }
    }

    fn type_filter(&mut self, code: KeyCode) -> Next {
        match code {
            KeyCode::Enter => self.typing = Typing::Keys,
            KeyCode::Esc => {
                self.typing = Typing::Keys;
                self.filter.clear();
            }
            KeyCode::Backspace => drop(self.filter.pop()),
            KeyCode::Char(letter) => self.filter.push(letter),
            _ => return Next::Nothing,
        }
        (self.selected, self.first) = (0, 0);
        Next::Ask
    }

    fn confirm(&mut self, code: KeyCode) -> Next {
        // The pending changes may be longer than the screen.
        if self.pane == Pane::Plan && self.scroll_by(code) {
            return Next::Nothing;
        }
        let asked = std::mem::replace(&mut self.typing, Typing::Keys);
        if self.pane == Pane::Plan {
            self.pane = Pane::Table;
        }
        if code != KeyCode::Char('y') {
            return Next::Nothing;
        }
        let is_one = matches!(asked, Typing::PauseOne | Typing::ResumeOne);
        let resources = if is_one { vec![self.subject.clone()] } else { Vec::new() };
        let ask = if matches!(asked, Typing::Pause | Typing::PauseOne) {
            let (seconds, reason) = (Some(PAUSE), "steadfast top".to_owned());
            Request::Pause { seconds, reason, resources, drain: false }
        } else {
            Request::Resume { resources }
        };
        Next::Order(PollQuery { about: About::Order, ask })
    }

    fn in_table(&mut self, code: KeyCode) -> Next {
        let page = self.room.max(1);
        match code {
            // Esc closes the innermost view; a filter is one.
            KeyCode::Esc if !self.filter.is_empty() => {
                self.filter.clear();
                (self.selected, self.first) = (0, 0);
            }
            KeyCode::Char('q') | KeyCode::Esc => return Next::Leave,
            KeyCode::Down | KeyCode::Char('j') => self.select(self.selected.saturating_add(1)),
            KeyCode::Up | KeyCode::Char('k') => self.select(self.selected.saturating_sub(1)),
            KeyCode::PageDown => self.select(self.selected.saturating_add(page)),
            KeyCode::PageUp => self.select(self.selected.saturating_sub(page)),
            KeyCode::Home | KeyCode::Char('g') => self.select(0),
            KeyCode::End | KeyCode::Char('G') => self.select(usize::MAX),
            KeyCode::Char('s') => {
                self.order = match self.order {
                    Order::State => Order::Name,
                    Order::Name => Order::Changed,
                    Order::Changed => Order::Repairs,
                    Order::Repairs => Order::State,
                };
                (self.selected, self.first) = (0, 0);
            }
            KeyCode::Char('/') => self.typing = Typing::Filter,
            KeyCode::Enter => return self.open(Pane::Details),
            KeyCode::Char('d') => return self.open(Pane::Diff),
            other => return self.anywhere(other),
        }
        Next::Ask
    }

    /// Handles the keys with the same meaning in the table and in a pane.
    fn anywhere(&mut self, code: KeyCode) -> Next {
        match code {
            KeyCode::Char('p') => self.typing = Typing::Pause,
            KeyCode::Char('r') => return self.ask_to_resume(Typing::Resume),
            KeyCode::Char('P') if self.take_subject() => self.typing = Typing::PauseOne,
            KeyCode::Char('R') if self.take_subject() => {
                return self.ask_to_resume(Typing::ResumeOne);
            }
            KeyCode::Char('e') => return self.open(Pane::Events),
            KeyCode::Char('?' | 'h') => return self.open(Pane::Help),
            _ => {}
        }
        Next::Nothing
    }

    /// Shows the pending changes, and asks for a confirmation to resume.
    fn ask_to_resume(&mut self, typing: Typing) -> Next {
        let is_one = typing == Typing::ResumeOne;
        let resources = if is_one { vec![self.subject.clone()] } else { Vec::new() };
        self.typing = typing;
        (self.pane, self.scroll, self.diff) = (Pane::Plan, 0, None);
        let ask = Request::Diff { resources, resume: is_one };
        Next::Order(PollQuery { about: About::Diff, ask })
    }

    fn in_pane(&mut self, code: KeyCode) -> Next {
        if self.scroll_by(code) {
            return Next::Nothing;
        }
        match code {
            KeyCode::Char('q') => {
                self.below.clear();
                self.close_pane()
            }
            KeyCode::Esc | KeyCode::Left => self.close_pane(),
            // The key that opens a pane closes it too.
            KeyCode::Char('?' | 'h') if self.pane == Pane::Help => self.close_pane(),
            KeyCode::Char('e') if self.pane == Pane::Events => self.close_pane(),
            KeyCode::Char('d') if self.pane == Pane::Details => self.open(Pane::Diff),
            other => self.anywhere(other),
        }
    }

    /// Handles a key that scrolls; returns false for other keys.
    fn scroll_by(&mut self, code: KeyCode) -> bool {
        let page = self.room.max(1);
        self.scroll = match code {
            KeyCode::Down | KeyCode::Char('j') => self.scroll.saturating_add(1),
            KeyCode::Up | KeyCode::Char('k') => self.scroll.saturating_sub(1),
            KeyCode::PageDown => self.scroll.saturating_add(page),
            KeyCode::PageUp => self.scroll.saturating_sub(page),
            _ => return false,
        };
        true
    }

    /// Returns to the pane below the open one.
    fn close_pane(&mut self) -> Next {
        let below = self.below.pop().unwrap_or(Pane::Table);
        (self.pane, self.scroll) = (below, 0);
        match below {
            Pane::Diff => self.ask_diff(),
            Pane::Details | Pane::Events => Next::Ask,
            Pane::Table | Pane::Plan | Pane::Help => Next::Nothing,
        }
    }

    fn ask_diff(&mut self) -> Next {
        let resources = vec![self.subject.clone()];
        let ask = Request::Diff { resources, resume: false };
        Next::Order(PollQuery { about: About::Diff, ask })
    }

    /// Opens a pane. Details and diff show the selected row, or the resource of the open pane.
    fn open(&mut self, pane: Pane) -> Next {
        if matches!(pane, Pane::Details | Pane::Diff) && !self.take_subject() {
            return Next::Nothing;
        }
        match self.pane {
            Pane::Table => self.below.clear(),
            Pane::Plan => {}
            // A pane that is open already is not stacked twice.
            open if open != pane => self.below.push(open),
            _ => {}
        }
        (self.pane, self.scroll, self.details, self.diff) = (pane, 0, None, None);
        self.events.clear();
        if pane == Pane::Diff { self.ask_diff() } else { Next::Ask }
    }

    /// Takes the selected row as the subject in the table; in a pane the subject stays. Returns true if there is one.
    fn take_subject(&mut self) -> bool {
        if self.pane == Pane::Table {
            let row = self.list.rows.get(self.selected.saturating_sub(self.first));
            self.subject = row.map(|row| row.resource.clone()).unwrap_or_default();
        }
        !self.subject.is_empty()
    }

    fn select(&mut self, row: usize) {
        self.selected = row.min(self.list.total.saturating_sub(1));
        self.show_selected();
    }

    /// Scrolls so that the selected row is visible.
    pub(super) fn show_selected(&mut self) {
        let room = self.room.max(1);
        if self.selected < self.first {
            self.first = self.selected;
        } else if self.selected >= self.first.saturating_add(room) {
            self.first = self.selected + 1 - room;
        }
    }
}

/// Returns the first part of a reply.
fn first<T: TryFrom<Data>>(pieces: Vec<Data>) -> Option<T> {
    pieces.into_iter().next().and_then(|piece| T::try_from(piece).ok())
}
