//! Drawing a model.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Paragraph, Row as TableRow, Table};

use super::model::{Model, Row};

/// What rows are sorted by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sort {
    /// Address.
    #[default]
    Endpoint,
    /// Requests in flight, most first.
    InFlight,
    /// Errors, most first.
    Errors,
}

/// How a model is shown.
#[derive(Clone, Debug, Default)]
pub struct View {
    /// What rows are sorted by.
    pub sort: Sort,
    /// The shown tick stays.
    pub paused: bool,
    /// Why the agent can't be read now.
    pub trouble: Option<String>,
    /// No colours (`NO_COLOR`).
    pub plain: bool,
}

const SMALLEST: (u16, u16) = (60, 6);
const BAR: usize = 10;

fn sorted(model: &Model, sort: Sort) -> Vec<&Row> {
    let mut rows: Vec<&Row> = model.rows.iter().collect();
    match sort {
        Sort::Endpoint => {}
        Sort::InFlight => rows.sort_by(|a, b| b.in_flight.total_cmp(&a.in_flight)),
        Sort::Errors => rows.sort_by(|a, b| b.errors.total_cmp(&a.errors)),
    }
    rows
}

fn optional(value: Option<f64>, text: impl Fn(f64) -> String) -> String {
    value.map_or_else(|| "-".to_owned(), text)
}

fn milliseconds(seconds: Option<f64>) -> String {
    optional(seconds, |seconds| format!("{:.1}", seconds * 1000.0))
}

/// Filled in proportion to the busiest endpoint.
fn bar(value: f64, most: f64) -> String {
    let filled = (1..=BAR).filter(|step| {
        most > 0.0 && value / most * 10.0 + 0.5 >= f64::from(u8::try_from(*step).unwrap_or(0))
    });
    let filled = filled.count();
    format!("{}{}", "#".repeat(filled), ".".repeat(BAR - filled))
}

fn table_row(row: &Row, most: f64) -> TableRow<'static> {
    TableRow::new([
        row.endpoint.clone(),
        row.role.clone(),
        format!("{} {}", bar(row.in_flight, most), row.in_flight),
        optional(row.connections, |it| it.to_string()),
        row.requests.to_string(),
        optional(row.requests_per_s, |it| format!("{it:.1}")),
        milliseconds(row.ttft_p50_s),
        milliseconds(row.ttft_p99_s),
        milliseconds(row.tpot_p50_s),
        row.errors.to_string(),
    ])
}

fn headline(model: &Model, view: &View) -> String {
    let state = match (&view.trouble, view.paused) {
        (Some(trouble), _) => format!("  NOT CONNECTED: {trouble}; trying again"),
        (None, true) => "  paused".to_owned(),
        (None, false) => String::new(),
    };
    format!("goodput-agent  tick {} at {:.3}{state}", model.tick, model.at_unix_s)
}

fn evidence(model: &Model) -> String {
    let complete = if model.complete {
        "complete".to_owned()
    } else {
        format!("INCOMPLETE: {}", model.reasons.join(", "))
    };
    let ratios = model.concentration.iter().map(|(role, ratio)| format!("{role} {ratio:.2}"));
    let ratios = ratios.collect::<Vec<_>>().join(", ");
    let ratios = if ratios.is_empty() { "idle".to_owned() } else { ratios };
    format!(
        "{complete}  lost {}  gaps {}  concentration {ratios}",
        model.records_failed, model.gaps
    )
}

/// Draws the whole screen.
pub fn draw(frame: &mut Frame<'_>, model: &Model, view: &View) {
    let area = frame.area();
    if area.width < SMALLEST.0 || area.height < SMALLEST.1 {
        let text = format!("make the terminal at least {} x {}", SMALLEST.0, SMALLEST.1);
        frame.render_widget(Paragraph::new(text), area);
        return;
    }
    let parts = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Min(1),
        Constraint::Length(1),
    ]);
    let [head, facts, body, help] = parts.areas(area);
    let colour = |colour| if view.plain { Style::new() } else { Style::new().fg(colour) };
    let head_style = if view.trouble.is_some() { colour(Color::Red) } else { Style::new() };
    frame.render_widget(Line::styled(headline(model, view), head_style), head);
    let facts_style = colour(if model.complete { Color::Green } else { Color::Red });
    frame.render_widget(Line::styled(evidence(model), facts_style), facts);
    let most = model.rows.iter().map(|row| row.in_flight).fold(0.0, f64::max);
    let rows = sorted(model, view.sort).into_iter().map(|row| table_row(row, most));
    let titles = [
        "endpoint",
        "role",
        "in flight",
        "conns",
        "requests",
        "req/s",
        "TTFT p50 ms",
        "p99 ms",
        "TPOT ms",
        "errors",
    ];
    let widths = [22, 8, 16, 6, 8, 7, 11, 9, 8, 6].map(Constraint::Length);
    let header = TableRow::new(titles).style(Style::new().add_modifier(Modifier::BOLD));
    frame.render_widget(Table::new(rows, widths).header(header), body);
    let keys = "q quit  p pause  sort: a address  f in flight  e errors   TTFT, TPOT since start";
    frame.render_widget(Line::raw(keys), help);
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;
    use crate::metrics::parse;

    const TEXT: &str = "# TYPE goodput_agent_requests_in_flight gauge\n\
        goodput_agent_requests_in_flight{endpoint=\"10.0.0.1:80\",role=\"backend\"} 3\n\
        goodput_agent_requests_in_flight{endpoint=\"10.0.0.2:80\",role=\"backend\"} 6\n\
        # TYPE goodput_agent_requests counter\n\
        goodput_agent_requests_total{endpoint=\"10.0.0.1:80\",outcome=\"ok\",role=\"backend\"} 40\n\
        goodput_agent_requests_total{endpoint=\"10.0.0.1:80\",outcome=\"reset\",role=\"backend\"} 2\n\
        # TYPE goodput_agent_time_to_first_token_seconds histogram\n\
        goodput_agent_time_to_first_token_seconds_bucket{endpoint=\"10.0.0.1:80\",le=\"0.1\"} 0\n\
        goodput_agent_time_to_first_token_seconds_bucket{endpoint=\"10.0.0.1:80\",le=\"0.2\"} 4\n\
        goodput_agent_time_to_first_token_seconds_bucket{endpoint=\"10.0.0.1:80\",le=\"+Inf\"} 4\n\
        # TYPE goodput_agent_ticks counter\ngoodput_agent_ticks_total 7\n\
        # TYPE goodput_agent_incomplete gauge\ngoodput_agent_incomplete{reason=\"ring_full\"} 1\n\
        # EOF\n";

    fn screen(width: u16, view: &View) -> String {
        let model = Model::new(&parse(TEXT).unwrap(), None);
        let mut terminal = Terminal::new(TestBackend::new(width, 8)).unwrap();
        terminal.draw(|frame| draw(frame, &model, view)).unwrap();
        terminal.backend().to_string()
    }

    #[test]
    fn the_screen_shows_the_values_of_the_text() {
        let screen = screen(120, &View::default());
        let line = screen.lines().find(|line| line.contains("10.0.0.1:80")).unwrap();
        let words: Vec<_> = line.trim_matches('"').split_whitespace().collect();
        let expected = [
            "10.0.0.1:80",
            "backend",
            "#####.....",
            "3",
            "-",
            "42",
            "-",
            "150.0",
            "199.0",
            "-",
            "2",
        ];
        assert_eq!(words, expected);
        assert!(screen.contains("tick 7") && screen.contains("INCOMPLETE: ring_full"), "{screen}");
    }

    #[test]
    fn a_small_terminal_and_a_lost_agent_are_told() {
        assert!(screen(40, &View::default()).contains("at least 60 x 6"));
        let lost = View { trouble: Some("refused".to_owned()), ..View::default() };
        assert!(screen(120, &lost).contains("NOT CONNECTED: refused; trying again"));
    }

    #[test]
    fn nothing_that_an_agent_sends_reaches_the_terminal_as_a_sequence() {
        let hostile = TEXT
            .replace("10.0.0.1:80", "\u{1b}[2J\u{9b}1m\u{7}x")
            .replace("reason=\"ring_full\"", "reason=\"a\\n\u{1b}]0;t\u{7}\"");
        let model = Model::new(&parse(&hostile).unwrap(), None);
        let trouble = Some("refused\r\n\u{1b}[31m".to_owned());
        let view = View { trouble, ..View::default() };
        let mut terminal = Terminal::new(TestBackend::new(120, 8)).unwrap();
        terminal.draw(|frame| draw(frame, &model, &view)).unwrap();
        let cells = terminal.backend().buffer().content();
        assert!(cells.iter().all(|cell| !cell.symbol().chars().any(char::is_control)));
        assert!(cells.iter().any(|cell| cell.symbol() == "x"));
    }

    #[test]
    fn rows_are_sorted_by_what_is_asked_for() {
        let busiest = screen(120, &View { sort: Sort::InFlight, ..View::default() });
        assert!(busiest.find("10.0.0.2:80").unwrap() < busiest.find("10.0.0.1:80").unwrap());
    }
}
