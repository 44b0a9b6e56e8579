//! `goodput-agent top`.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind};

use crate::metrics;
use crate::top::{Model, Sort, View, draw};

const EXAMPLES: &str = "Examples:
  goodput-agent top
  goodput-agent top --api http://10.0.0.10:9911 --token-file agent.token
  goodput-agent top --json | jq '.rows[].in_flight'";

/// Options of `top`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct TopArgs {
    /// The agent's API
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:9911")]
    api: String,
    /// File with the token that the API wants
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Print one tick as text and end
    #[arg(long, conflicts_with = "json")]
    once: bool,
    /// Print one tick as JSON and end
    #[arg(long)]
    json: bool,
    /// Time between ticks
    #[arg(long, value_name = "MS", default_value_t = 1000,
        value_parser = clap::value_parser!(u64).range(50..=3_600_000))]
    interval_ms: u64,
    /// Write the text that each tick was drawn from to this file
    #[arg(long, value_name = "FILE")]
    dump: Option<PathBuf>,
}

struct Agent {
    runtime: tokio::runtime::Runtime,
    client: reqwest::Client,
    url: String,
    token: Option<String>,
    dump: Option<PathBuf>,
}

impl Agent {
    fn new(args: &TopArgs) -> anyhow::Result<Self> {
        let token = args.token_file.as_deref().map(|path| {
            std::fs::read_to_string(path)
                .with_context(|| format!("{}: name a readable file", path.display()))
        });
        Ok(Self {
            runtime: tokio::runtime::Builder::new_current_thread().enable_all().build()?,
            client: reqwest::Client::builder().timeout(Duration::from_secs(5)).build()?,
            url: format!("{}/metrics", args.api.trim_end_matches('/')),
            token: token.transpose()?.map(|text| text.trim().to_owned()),
            dump: args.dump.clone(),
        })
    }

    fn tick(&self, before: Option<&Model>) -> anyhow::Result<Model> {
        let text = self.runtime.block_on(async {
            let mut request = self.client.get(&self.url);
            if let Some(token) = &self.token {
                request = request.bearer_auth(token);
            }
            request.send().await?.error_for_status()?.text().await
        });
        let text = text.with_context(|| "the agent can't be read: check --api and --token-file")?;
        let families = metrics::parse(&text)?;
        if let Some(path) = &self.dump {
            std::fs::write(path, &text)
                .with_context(|| format!("{}: name a writable file", path.display()))?;
        }
        Ok(Model::new(&families, before))
    }
}

/// Shows ticks until `q`.
pub(super) fn execute(args: &TopArgs) -> anyhow::Result<ExitCode> {
    let agent = Agent::new(args)?;
    let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    if args.json || args.once {
        let model = agent.tick(None)?;
        let mut out = std::io::stdout().lock();
        if args.json {
            writeln!(out, "{}", serde_json::to_string(&model)?)?;
        } else {
            writeln!(out, "{}", drawn(&model)?)?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let mut terminal = ratatui::try_init().context("no terminal; use --once or --json")?;
    let shown = show(&mut terminal, &agent, args.interval_ms, plain);
    ratatui::restore();
    shown.map(|()| ExitCode::SUCCESS)
}

/// The screen as text.
fn drawn(model: &Model) -> anyhow::Result<String> {
    use ratatui::backend::TestBackend;
    let height = u16::try_from(model.rows.len() + 4).unwrap_or(u16::MAX).max(6);
    let mut terminal = ratatui::Terminal::new(TestBackend::new(120, height))?;
    terminal.draw(|frame| draw(frame, model, &View { plain: true, ..View::default() }))?;
    let screen = terminal.backend().to_string();
    let lines = screen.lines().map(|line| line.trim_matches('"').trim_end());
    Ok(lines.collect::<Vec<_>>().join("\n"))
}

fn show(
    terminal: &mut ratatui::DefaultTerminal,
    agent: &Agent,
    interval_ms: u64,
    plain: bool,
) -> anyhow::Result<()> {
    let interval = Duration::from_millis(interval_ms);
    let mut view = View { plain, ..View::default() };
    let mut model = Model::default();
    let mut next = Instant::now();
    loop {
        if Instant::now() >= next {
            next = Instant::now() + interval;
            if !view.paused {
                let before = (model.tick > 0.0).then_some(&model);
                match agent.tick(before) {
                    Ok(tick) => (model, view.trouble) = (tick, None),
                    Err(error) => view.trouble = Some(format!("{error:#}")),
                }
            }
        }
        terminal.draw(|frame| draw(frame, &model, &view))?;
        if event::poll(next.saturating_duration_since(Instant::now()))?
            && let Event::Key(key) = event::read()?
            && key.kind == KeyEventKind::Press
        {
            match key.code {
                KeyCode::Char('q') | KeyCode::Esc => return Ok(()),
                KeyCode::Char('p') => view.paused = !view.paused,
                KeyCode::Char('a') => view.sort = Sort::Endpoint,
                KeyCode::Char('f') => view.sort = Sort::InFlight,
                KeyCode::Char('e') => view.sort = Sort::Errors,
                _ => {}
            }
        }
    }
}
