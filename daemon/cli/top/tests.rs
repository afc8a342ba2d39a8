//! Tests of the drawn screen in 80×24, with and without colours, and of the keys.

use super::draw::draw;
use super::poller::{About, PollResult};
use super::view::{Next, Pane, View};
use crate::api::{
    self, Ages, Counts, Data, Differing, EventKind, GraphRejection, HostStatus, Inspection,
    Inspections, Level, List, Phase, Request, ResourceDetails, ResourceStatus, Status,
};
use crate::cli::client::now;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers};
use ratatui::style::Color;

fn resource(name: &str, phase: Phase, says: &str) -> ResourceStatus {
    ResourceStatus {
        resource: name.to_owned(),
        phase,
        message: says.to_owned(),
        waits_for: Vec::new(),
        next_try_in: None,
        running_for: None,
        awaiting_operator_for: None,
        error: None,
        ages: Ages::default(),
        repairs: 0,
        last_change: None,
        pending_removal: false,
        pause: None,
    }
}

fn status(verdict: HostStatus) -> Status {
    Status {
        verdict,
        graph: "web".to_owned(),
        counts: Counts { total: 3, settled: 1, failed: 1, waiting: 1, ..Counts::default() },
        uptime: 7200,
        version: String::new(),
        ..Status::starting()
    }
}

fn rows() -> Vec<ResourceStatus> {
    let mut failed = resource("pkg[nginx]", Phase::Failed, "failed, no retries left");
    failed.error = Some("no such package\u{1b}[2J\nforged".to_owned());
    let mut waits = resource("svc[nginx]", Phase::Waiting, "waiting for others");
    waits.waits_for = vec!["pkg[nginx]".to_owned()];
    let mut well = resource("file[/srv/a\u{202e}b]", Phase::Settled, "as declared");
    (well.repairs, well.ages.repair) = (12, Some(61));
    vec![failed, waits, well]
}

/// Creates a view with a status and a list.
fn view(colour: bool) -> View {
    let mut view = View::new(colour);
    show(&mut view, About::Status, status(HostStatus::Failed));
    list(&mut view, rows(), 3);
    view
}

fn show(view: &mut View, about: About, data: impl Into<Data>) {
    let query = view.questions().into_iter().find(|query| query.about == about);
    let ask = query.map_or(Request::Workers, |query| query.ask);
    view.hear(PollResult { about, ask, answer: Ok(vec![data.into()]) });
}

fn list(view: &mut View, rows: Vec<ResourceStatus>, total: usize) {
    show(view, About::List, List { rows, total });
}

fn shown(view: &mut View, columns: u16, lines: u16) -> Terminal<TestBackend> {
    let mut terminal = Terminal::new(TestBackend::new(columns, lines)).expect("a terminal");
    terminal.draw(|frame| draw(frame, view)).expect("drawn");
    terminal
}

/// Returns the lines drawn in 80 columns.
fn lines(view: &mut View) -> Vec<String> {
    lines_of(view, 80)
}

/// Returns the drawn lines without empty lines and trailing blanks.
fn lines_of(view: &mut View, columns: u16) -> Vec<String> {
    let terminal = shown(view, columns, 24);
    let buffer = terminal.backend().buffer();
    let text = |y| (0..columns).map(|x| buffer[(x, y)].symbol()).collect::<String>();
    let all = (0..24).map(text).map(|line| line.trim_end().to_owned());
    all.filter(|line| !line.is_empty()).collect()
}

fn key(view: &mut View, code: KeyCode) -> Next {
    view.react(&Event::Key(KeyEvent::new(code, KeyModifiers::NONE)))
}

/// The table is sorted worst first and shows the blockers; foreign text can neither move the cursor nor forge a line.
#[test]
fn the_table_shows_all_in_eighty_columns() {
    assert_eq!(
        lines(&mut view(false)),
        [
            "web: failed: 2 of 3 resources not converged",
            "1 ok, 1 waiting, 1 failed; up 2 h 0 min",
            "STATE*    RESOURCE              CHANGED  REPAIRS  MESSAGE",
            "failed    pkg[nginx]                              failed, no retries left: no su",
            "waiting   svc[nginx]                              waiting for others: pkg[nginx]",
            "ok        file[/srv/a\\u{202e}b] 1 min    12",
            "3 resources  enter show  ? keys  q quit  d diff  e events  s sort  / filter",
        ]
    );
}

/// A narrow screen leaves out the columns of the last change and of the repairs.
#[test]
fn a_narrow_screen_shows_states_names_and_messages() {
    assert_eq!(
        lines_of(&mut view(false), 60),
        [
            "web: failed: 2 of 3 resources not converged",
            "1 ok, 1 waiting, 1 failed; up 2 h 0 min",
            "STATE*    RESOURCE              MESSAGE",
            "failed    pkg[nginx]            failed, no retries left: no",
            "waiting   svc[nginx]            waiting for others: pkg[ngin",
            "ok        file[/srv/a\\u{202e}b]",
            "3 resources  enter show  ? keys  q quit  d diff  e events  s",
        ]
    );
}

/// Without colours nothing is coloured, and the selected row is still visible.
#[test]
fn without_colours_nothing_is_lost() {
    let colours = |colour: bool| {
        let terminal = shown(&mut view(colour), 80, 24);
        let cells = terminal.backend().buffer().content().to_vec();
        let reversed =
            cells.iter().filter(|cell| cell.modifier.contains(ratatui::style::Modifier::REVERSED));
        assert!(reversed.count() >= 70, "the selected row");
        cells.iter().filter(|cell| cell.fg != Color::Reset || cell.bg != Color::Reset).count()
    };
    assert_eq!(colours(false), 0);
    assert!(colours(true) > 0);
}

/// Any size of the terminal can be drawn without a panic.
#[test]
fn any_size_can_be_drawn() {
    for pane in [Pane::Table, Pane::Details, Pane::Diff, Pane::Events, Pane::Help] {
        for (columns, lines) in [(0, 0), (1, 1), (10, 2), (3, 40), (200, 3), (300, 100)] {
            let mut view = view(true);
            view.pane = pane;
            shown(&mut view, columns, lines);
        }
    }
}

/// Only visible rows are requested, from the scroll position; replies to older requests are ignored.
#[test]
fn scrolling_asks_for_what_is_seen() {
    let mut view = view(false);
    list(&mut view, rows(), 1000);
    shown(&mut view, 80, 24);
    assert_eq!(key(&mut view, KeyCode::End), Next::Ask);
    assert_eq!((view.selected, view.first, view.room), (999, 981, 19));
    let ask = |view: &View| view.questions().into_iter().find(|q| q.about == About::List);
    let asked = ask(&view).expect("asked").ask;
    assert!(matches!(asked, Request::List { from: 981, limit: 19, .. }), "{asked:?}");
    key(&mut view, KeyCode::Home);
    let answer = Ok(vec![List { rows: Vec::new(), total: 1 }.into()]);
    view.hear(PollResult { about: About::List, ask: asked, answer });
    assert_eq!(view.list.total, 1000, "an old answer");
    // The list has become shorter.
    key(&mut view, KeyCode::End);
    list(&mut view, rows(), 3);
    shown(&mut view, 80, 24);
    assert_eq!((view.selected, view.first), (2, 0));
}

/// A filter is typed, used and dropped; keys are letters meanwhile.
#[test]
fn a_filter_is_typed() {
    let mut view = view(false);
    for code in [KeyCode::Char('/'), KeyCode::Char('q'), KeyCode::Char('x'), KeyCode::Backspace] {
        assert_ne!(key(&mut view, code), Next::Leave);
    }
    assert_eq!(view.filter, "q");
    assert!(lines(&mut view).contains(&"filter: q_".to_owned()));
    key(&mut view, KeyCode::Enter);
    assert!(lines(&mut view).iter().any(|line| line.starts_with("3 with `q`")));
    key(&mut view, KeyCode::Char('/'));
    key(&mut view, KeyCode::Esc);
    assert_eq!(view.filter, "");
    let ctrl_c = Event::Key(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL));
    assert_eq!(view.react(&ctrl_c), Next::Leave);
}

/// Esc closes the innermost view: a typed filter, a pane above another, a pane, a filter, and then the program.
#[test]
fn esc_closes_the_innermost_view() {
    let mut view = view(false);
    for code in [KeyCode::Char('/'), KeyCode::Char('n'), KeyCode::Enter, KeyCode::Enter] {
        assert_ne!(key(&mut view, code), Next::Leave);
    }
    assert_eq!(view.pane, Pane::Details);
    key(&mut view, KeyCode::Char('d'));
    key(&mut view, KeyCode::Char('?'));
    assert_eq!(view.pane, Pane::Help);
    // The key that opened the help closes it.
    key(&mut view, KeyCode::Char('?'));
    assert_eq!(view.pane, Pane::Diff);
    key(&mut view, KeyCode::Esc);
    assert_eq!(view.pane, Pane::Details);
    key(&mut view, KeyCode::Esc);
    assert_eq!((view.pane, view.filter.as_str()), (Pane::Table, "n"));
    assert_eq!(key(&mut view, KeyCode::Esc), Next::Ask);
    assert_eq!(view.filter, "");
    assert_eq!(key(&mut view, KeyCode::Esc), Next::Leave);
}

/// A long name is whole where there is room, and leaves half of the room to messages where there is none.
#[test]
fn names_are_whole_where_there_is_room() {
    let name = format!("file[/srv/{}]", "long/".repeat(12));
    let mut long = resource(&name, Phase::Settled, "converged");
    let mut view = view(false);
    list(&mut view, vec![long.clone()], 1);
    let text = |view: &mut View, columns: u16| {
        let terminal = shown(view, columns, 24);
        let buffer = terminal.backend().buffer();
        let row = (0..columns).map(|x| buffer[(x, 4)].symbol()).collect::<String>();
        row.trim_end().to_owned()
    };
    assert!(text(&mut view, 120).contains(&name));
    assert!(!text(&mut view, 80).contains(&name));
    (long.phase, long.message) = (Phase::Waiting, "waiting for its rate limit".to_owned());
    list(&mut view, vec![long], 1);
    let row = text(&mut view, 80);
    assert!(row.ends_with("waiting for its rate limit"), "{row}");
}

/// The pane of a resource has its state, its dependencies, its declaration, its owner and its last events.
#[test]
fn the_details_of_a_resource_are_whole() {
    let mut view = view(false);
    assert_eq!(key(&mut view, KeyCode::Enter), Next::Ask);
    let mut failed = rows().remove(0);
    failed.ages = Ages { check: Some(5), repair: None, event: Some(3700) };
    let details = ResourceDetails {
        status: failed,
        needs: vec!["repo[nginx]".to_owned()],
        needed_by: vec!["svc[nginx]".to_owned(), "file[/etc/nginx/nginx.conf]".to_owned()],
        waited_for_by: vec!["svc[nginx]".to_owned()],
        watch: "inotify".to_owned(),
        declared_at: Some(("/etc/steadfast/graph.yaml".to_owned(), 7)),
        owned: None,
        condition_at: None,
    };
    show(&mut view, About::Details, details);
    let event = |level, ago: u64, message: &str, kind| api::Event {
        number: Some(ago),
        at: now().saturating_sub(ago * 1000),
        resource: Some("pkg[nginx]".to_owned()),
        level,
        message: message.to_owned(),
        kind,
    };
    let query = view.questions().into_iter().find(|query| query.about == About::Events);
    let ask = query.expect("events are requested").ask;
    let (recovered, stuck) = (EventKind::Recovered, EventKind::Stuck);
    let events = vec![
        event(Level::Info, 7200, "", recovered).into(),
        event(Level::Error, 60, "the run does not return", stuck).into(),
    ];
    view.hear(PollResult { about: About::Events, ask, answer: Ok(events) });
    assert_eq!(
        lines(&mut view)[2..],
        [
            "pkg[nginx]",
            "pkg[nginx]: failed, no retries left: no such package\\u{1b}[2J    forged",
            "  needs: repo[nginx]",
            "  needed by: svc[nginx], file[/etc/nginx/nginx.conf]",
            "  events: inotify",
            "  dependents waiting: svc[nginx]",
            "  declared at: /etc/steadfast/graph.yaml:7",
            "  checked: 5 s ago",
            "  changed: not since it became active",
            "  last event: 1 h 1 min ago",
            "events, newest first",
            "  -1 min  stuck pkg[nginx]: the run does not return",
            "-2 h 0 min  recovered pkg[nginx]",
            "esc back  q table  up/down scroll",
        ]
    );
}

/// A message that is longer than the screen is folded at its blanks, and scrolling counts the folded lines.
#[test]
fn long_lines_of_a_pane_are_folded() {
    let mut view = view(false);
    key(&mut view, KeyCode::Char('d'));
    let why = format!("{} end of words", "word ".repeat(30).trim_end());
    let ask = Request::Diff { resources: vec!["pkg[nginx]".to_owned()], resume: false };
    view.hear(PollResult { about: About::Diff, ask: ask.clone(), answer: Err(why) });
    let all = lines(&mut view);
    let at = all.iter().position(|line| line == "pkg[nginx]: differences").expect("a title") + 1;
    assert_eq!(all[at], "word ".repeat(16).trim_end());
    assert_eq!(all[at + 1], format!("    {} end", "word ".repeat(14).trim_end()));
    assert_eq!(all[at + 2], "    of words");
    // A long word is cut, and no character is lost.
    let word = "x".repeat(200);
    view.hear(PollResult { about: About::Diff, ask, answer: Err(word.clone()) });
    let all = lines(&mut view);
    let shown: String = all[at..at + 3].iter().map(|line| line.trim_start()).collect();
    assert_eq!(shown, word);
    assert!(all[at + 3].starts_with("esc back"), "{all:#?}");
}

/// The keys of the help fit into eighty columns.
#[test]
fn the_help_fits_into_eighty_columns() {
    let mut view = view(false);
    key(&mut view, KeyCode::Char('?'));
    let all = lines(&mut view);
    let folded: Vec<&String> = all.iter().filter(|line| line.starts_with("    ")).collect();
    assert!(folded.is_empty(), "{folded:?}");
    assert!(all.iter().any(|line| line.ends_with("quit from the table")), "{all:#?}");
}

/// Each state of a resource has its colour, and a failure is bold without colours.
#[test]
fn each_state_has_its_colour() {
    let colours = [
        (Phase::Stuck, Color::Red),
        (Phase::Failed, Color::Red),
        (Phase::Delayed, Color::Red),
        (Phase::Contended, Color::Yellow),
        (Phase::Held, Color::Yellow),
        (Phase::Waiting, Color::Cyan),
        (Phase::Running, Color::Cyan),
        (Phase::Settled, Color::Green),
        (Phase::Inactive, Color::Reset),
    ];
    let rows: Vec<ResourceStatus> =
        colours.iter().map(|(phase, _)| resource("file[a]", *phase, "")).collect();
    for is_coloured in [true, false] {
        let mut view = view(is_coloured);
        list(&mut view, rows.clone(), rows.len());
        let terminal = shown(&mut view, 80, 24);
        for ((phase, colour), y) in colours.iter().zip(4..) {
            let cell = &terminal.backend().buffer()[(0, y)];
            let expected = if is_coloured { *colour } else { Color::Reset };
            assert_eq!(cell.fg, expected, "{phase:?}");
            let is_bold = cell.modifier.contains(ratatui::style::Modifier::BOLD);
            assert_eq!(is_bold, *colour == Color::Red, "{phase:?}");
        }
    }
}

/// Pause and resume must be confirmed.
#[test]
fn an_order_is_confirmed() {
    let mut view = view(false);
    assert_eq!(key(&mut view, KeyCode::Char('p')), Next::Nothing);
    assert!(
        lines(&mut view).iter().any(|line| line.contains("pause all repairs for an hour? y/n"))
    );
    assert_eq!(key(&mut view, KeyCode::Char('n')), Next::Nothing);
    assert_eq!(key(&mut view, KeyCode::Char('y')), Next::Nothing);
    key(&mut view, KeyCode::Char('p'));
    let Next::Order(order) = key(&mut view, KeyCode::Char('y')) else { panic!("no order") };
    assert!(matches!(order.ask, Request::Pause { seconds: Some(3600), .. }));
    let denied = Err("user 7 may only query; root may make changes".to_owned());
    view.hear(PollResult { about: About::Order, ask: order.ask, answer: denied });
    assert!(lines(&mut view).contains(&"user 7 may only query; root may make changes".to_owned()));
}

/// A rejected graph is shown below the headline.
#[test]
fn a_refused_graph_is_said() {
    let mut view = view(false);
    let full = "web.yaml:7:3: unknown key \u{1b}`pth`".to_owned();
    let refused = GraphRejection { rejected_for: 61, reason: full.clone(), details: full };
    let status = Status { rejected: Some(refused), ..status(HostStatus::Converged) };
    show(&mut view, About::Status, status);
    let says = "the current graph file was rejected 1 min ago: web.yaml:7:3: unknown key";
    let all = lines(&mut view);
    assert!(all[2].starts_with(says) && !all[2].contains('\u{1b}'), "{all:#?}");
}

/// The pending changes are shown before the question to resume; the pane scrolls, and any key but `y` cancels.
#[test]
fn pending_changes_are_shown_before_a_resume() {
    let mut view = view(false);
    let Next::Order(order) = key(&mut view, KeyCode::Char('r')) else { panic!("no look") };
    let all = Request::Diff { resources: Vec::new(), resume: false };
    assert_eq!((order.about, order.ask), (About::Diff, all));
    let differing = Differing {
        aspect: "mode".to_owned(),
        from: "0600".to_owned(),
        to: "0644".to_owned(),
        diff: None,
    };
    let of = |number| Inspection {
        resource: format!("file[{number}]"),
        differences: vec![differing.clone()],
        ..Inspection::default()
    };
    let found =
        Inspections { items: (0..50).map(of).collect(), skipped: 0, ..Inspections::default() };
    show(&mut view, About::Diff, found);
    let all = lines(&mut view);
    assert!(all.contains(&"pending changes after a resume".to_owned()), "{all:#?}");
    assert!(all.contains(&"file[0]".to_owned()) && all.contains(&"resume? y/n".to_owned()));
    assert_eq!(key(&mut view, KeyCode::PageDown), Next::Nothing);
    let all = lines(&mut view);
    assert!(!all.contains(&"file[0]".to_owned()) && all.contains(&"resume? y/n".to_owned()));
    assert_eq!((key(&mut view, KeyCode::Char('n')), view.pane), (Next::Nothing, Pane::Table));
    key(&mut view, KeyCode::Char('r'));
    let Next::Order(order) = key(&mut view, KeyCode::Char('y')) else { panic!("no order") };
    assert_eq!(order.ask, Request::Resume { resources: Vec::new() });
    assert_eq!(view.pane, Pane::Table);
}

/// Capital keys pause one resource: the selected one, or that of the pane.
#[test]
fn an_order_may_be_for_one() {
    let mut view = view(false);
    key(&mut view, KeyCode::Down);
    key(&mut view, KeyCode::Char('P'));
    assert!(lines(&mut view).contains(&"pause svc[nginx] for an hour? y/n".to_owned()));
    let Next::Order(order) = key(&mut view, KeyCode::Char('y')) else { panic!("no order") };
    let one = vec!["svc[nginx]".to_owned()];
    assert!(matches!(order.ask, Request::Pause { resources, .. } if resources == one));
    key(&mut view, KeyCode::Enter);
    key(&mut view, KeyCode::Char('R'));
    let Next::Order(order) = key(&mut view, KeyCode::Char('y')) else { panic!("no order") };
    assert_eq!(order.ask, Request::Resume { resources: one });
    let mut empty = View::new(false);
    key(&mut empty, KeyCode::Char('P'));
    assert_eq!(key(&mut empty, KeyCode::Char('y')), Next::Nothing, "there is none");
}

/// The diff of the selected resource is shown.
#[test]
fn a_diff_is_shown() {
    let mut view = view(false);
    key(&mut view, KeyCode::Down);
    let Next::Order(order) = key(&mut view, KeyCode::Char('d')) else { panic!("no order") };
    let one = vec!["svc[nginx]".to_owned()];
    assert_eq!(order.ask, Request::Diff { resources: one, resume: false });
    assert!(lines(&mut view).contains(&"looking".to_owned()));
    let differing = Differing {
        aspect: "content".to_owned(),
        from: String::new(),
        to: String::new(),
        diff: Some("-is\u{7}\n+shall\n".to_owned()),
    };
    let found = Inspection {
        resource: "svc[nginx]".to_owned(),
        differences: vec![differing],
        ..Inspection::default()
    };
    let found = Inspections { items: vec![found], skipped: 0, ..Inspections::default() };
    show(&mut view, About::Diff, found);
    let all = lines(&mut view);
    let at = all.iter().position(|line| line == "svc[nginx]: differences").expect("a title");
    assert_eq!(all[at + 1..at + 5], ["svc[nginx]", "  content", "    -is\\u{7}", "    +shall"]);
    assert_eq!(key(&mut view, KeyCode::Esc), Next::Nothing);
    assert_eq!((view.pane, key(&mut view, KeyCode::Esc)), (Pane::Table, Next::Leave));
}

/// A lost daemon is reported while the shown data stays; after its return the view is as before.
#[test]
fn a_daemon_that_is_gone_is_said() {
    let mut view = view(false);
    let answer = Err("no daemon listens at /run/x".to_owned());
    view.hear(PollResult { about: About::Status, ask: Request::Status { limit: 0 }, answer });
    let all = lines(&mut view);
    assert!(
        all.contains(&"the data is outdated: no daemon listens at /run/x".to_owned()),
        "{all:?}"
    );
    assert!(all.iter().any(|line| line.starts_with("failed    pkg[nginx]")));
    show(&mut view, About::Status, status(HostStatus::Converged));
    assert!(!lines(&mut view).iter().any(|line| line.contains("is outdated")));
    let mut empty = View::new(false);
    let answer = Err("no daemon listens at /run/x".to_owned());
    empty.hear(PollResult { about: About::Status, ask: Request::Status { limit: 0 }, answer });
    assert_eq!(lines(&mut empty)[0], "no daemon listens at /run/x");
}
