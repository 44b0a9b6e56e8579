//! `goodput-agent read`.

mod table;

use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use indicatif::{ProgressBar, ProgressStyle};

use crate::capture::pcap::FileSource;
use crate::endpoint::{Endpoint, Role};
use crate::observation::{FILE_CLOCK, KernelRow, Observation};
use crate::read::{Listeners, ReadReport, find_listeners, read};

/// Smaller files are read before anybody could look at a bar.
const BAR_FROM_BYTES: u64 = 32 * 1024 * 1024;
const STDIO: &str = "-";

const EXAMPLES: &str = "Examples:
  goodput-agent read capture.pcap                        lists the servers in the file
  goodput-agent read capture.pcap --endpoint backend=10.0.1.1:8000
  goodput-agent read capture.pcapng --endpoint auto --json
  goodput-agent read capture.pcap --endpoint vip=10.0.0.1:80 --jsonl kernel.jsonl
  gzip -dc capture.pcap.gz | goodput-agent read - --endpoint backend=10.0.1.1:8000

Capture with: tcpdump -i any -s 0 --time-stamp-precision=nano -w capture.pcap tcp port 8000";

/// Options of `read`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ReadArgs {
    /// pcap or pcapng file; `-` is standard input
    file: PathBuf,
    /// Server to watch, as ROLE=ADDRESS:PORT with role vip, backend, prefill or decode; `auto` takes
    /// every address that sends HTTP responses, as a backend
    #[arg(long = "endpoint", value_name = "ROLE=ADDRESS:PORT|auto")]
    endpoints: Vec<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Write one row per request (`docs/formats.md`, kernel.jsonl); `-` is standard output, and the
    /// summary then goes to standard error
    #[arg(long, value_name = "FILE", requires = "endpoints")]
    jsonl: Option<PathBuf>,
}

impl ReadArgs {
    fn is_stdin(&self) -> bool {
        self.file.as_os_str() == STDIO
    }

    fn open(&self) -> anyhow::Result<(Box<dyn Read>, ProgressBar)> {
        if self.is_stdin() {
            return Ok((Box::new(std::io::stdin().lock()), ProgressBar::hidden()));
        }
        let name = self.file.display();
        let file = File::open(&self.file);
        let file = file.with_context(|| format!("{name}: check the name and its permissions"))?;
        let data = file.metadata()?;
        anyhow::ensure!(!data.is_dir(), "{name} is a folder: name a pcap or pcapng file");
        Ok((Box::new(file), bar(data.len())?))
    }

    /// Says which file an error is about.
    fn about<T, E: std::fmt::Display>(&self, result: Result<T, E>) -> anyhow::Result<T> {
        result.map_err(|error| anyhow::anyhow!("{}: {error}", self.file.display()))
    }

    fn listeners(&self) -> anyhow::Result<Listeners> {
        let (file, bar) = self.open()?;
        let found = self.about(find_listeners(file, &mut |position| bar.set_position(position)));
        bar.finish_and_clear();
        found
    }

    fn endpoints(&self) -> anyhow::Result<Vec<Endpoint>> {
        let mut endpoints = Vec::new();
        for text in &self.endpoints {
            if text == "auto" {
                endpoints.extend(self.auto()?);
            } else {
                endpoints.push(text.parse().map_err(anyhow::Error::msg)?);
            }
        }
        Ok(endpoints)
    }

    /// Every address that sends HTTP responses, said aloud: roles are not in the bytes.
    fn auto(&self) -> anyhow::Result<Vec<Endpoint>> {
        anyhow::ensure!(
            !self.is_stdin(),
            "--endpoint auto reads the file twice, which standard input can't: name the endpoint"
        );
        let found = self.listeners()?.listeners;
        let http = found.iter().filter(|it| it.http_responses > 0);
        let endpoint = |address| Endpoint { address, role: Role::Backend };
        let endpoints: Vec<_> = http.map(|it| endpoint(it.address)).collect();
        anyhow::ensure!(
            !endpoints.is_empty(),
            "{}: no HTTP/1 response was seen, so that auto finds no endpoint: \
             run without --endpoint for a list of servers",
            self.file.display()
        );
        for endpoint in &endpoints {
            eprintln!("auto: --endpoint {}={}", endpoint.role, endpoint.address);
        }
        Ok(endpoints)
    }
}

fn bar(bytes: u64) -> anyhow::Result<ProgressBar> {
    if bytes < BAR_FROM_BYTES {
        return Ok(ProgressBar::hidden());
    }
    let template = "{bar:30} {bytes}/{total_bytes} {bytes_per_sec} {eta}";
    Ok(ProgressBar::new(bytes).with_style(ProgressStyle::with_template(template)?))
}

/// Reads the file, or lists its servers.
pub(super) fn execute(args: &ReadArgs) -> anyhow::Result<ExitCode> {
    if args.endpoints.is_empty() {
        let found = args.listeners()?;
        list(args, &found)?;
    } else {
        let report = report(args)?;
        print(args, &report)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn list(args: &ReadArgs, found: &Listeners) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    if args.json {
        let listing = serde_json::json!({
            "schema": "goodput.listeners/1",
            "clock": FILE_CLOCK,
            "listeners": found.listeners,
            "cut": found.cut,
        });
        writeln!(out, "{listing}")?;
    } else {
        write!(out, "{}", table::listeners(&args.file, found))?;
    }
    Ok(())
}

fn report(args: &ReadArgs) -> anyhow::Result<ReadReport> {
    let endpoints = args.endpoints()?;
    let (file, bar) = args.open()?;
    let addresses = endpoints.iter().map(|endpoint| endpoint.address);
    let source = args.about(FileSource::open(file, addresses))?;
    let mut rows = args.jsonl.as_deref().map(rows_to).transpose()?;
    let mut failed = None;
    let observe = &mut |observation: &Observation| {
        let Some(rows) = rows.as_mut().filter(|_| failed.is_none()) else { return };
        failed = write_row(rows, observation).err();
    };
    let report = read(source, &endpoints, observe, &mut |position| bar.set_position(position));
    bar.finish_and_clear();
    if let Some(rows) = &mut rows {
        failed = failed.or(rows.flush().err().map(Into::into));
    }
    match failed {
        Some(error) => {
            Err(error.context("--jsonl: the rows can't be written; choose another file"))
        }
        None => Ok(report),
    }
}

fn rows_to(path: &Path) -> anyhow::Result<Box<dyn Write>> {
    if path.as_os_str() == STDIO {
        return Ok(Box::new(BufWriter::new(std::io::stdout().lock())));
    }
    let file = File::create(path);
    let file = file.with_context(|| format!("{}: choose a writable file", path.display()))?;
    Ok(Box::new(BufWriter::new(file)))
}

fn write_row(rows: &mut dyn Write, observation: &Observation) -> anyhow::Result<()> {
    let row = KernelRow::new(observation).on_file_clock();
    writeln!(rows, "{}", serde_json::to_string(&row)?)?;
    Ok(())
}

fn print(args: &ReadArgs, report: &ReadReport) -> anyhow::Result<()> {
    let text = if args.json {
        format!("{}\n", serde_json::to_string(report)?)
    } else {
        table::report(&args.file, report)
    };
    if args.jsonl.as_deref().is_some_and(|path| path.as_os_str() == STDIO) {
        eprint!("{text}");
    } else {
        write!(std::io::stdout().lock(), "{text}")?;
    }
    Ok(())
}
