//! `goodput import`: exports of other tools become a run directory.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use analyzer::import::{Arm, Imported, Request, Slo, Tool, import, write};
use analyzer::rundir::{Lack, to_json};

const EXAMPLES: &str = "Examples:
  goodput import vllm-bench rep1.json rep2.json --out runs/vllm --accelerators 8 \\
    --ttft-ms 500 --tpot-ms 40 --slo-origin '5 x our unloaded median, 2026-11-12'
  goodput import aiperf floor=a/profile_export.jsonl aware=b/profile_export.jsonl \\
    --rate 20 --out runs/ab --accelerators 8 --ttft-ms 500 --tpot-ms 40 --slo-origin 'service contract'
  goodput import guidellm benchmarks.json --out runs/guide --accelerators 1 \\
    --ttft-ms 500 --tpot-ms 40 --slo-origin 'service contract'
  goodput verify runs/vllm --json | jq .imported

Each run of the tool is a repetition of its arm and rate, in the order named. What an export cannot prove
is listed in import.json; nothing imported can be published (docs/import.md).
Exit codes: 0 imported, 2 bad input; nothing is written then.";

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum ToolName {
    /// profile_export.jsonl of NVIDIA AIPerf
    Aiperf,
    /// Result of `vllm bench serve --save-result --save-detailed`
    VllmBench,
    /// benchmarks.json of GuideLLM
    Guidellm,
}

impl From<ToolName> for Tool {
    fn from(name: ToolName) -> Self {
        match name {
            ToolName::Aiperf => Self::Aiperf,
            ToolName::VllmBench => Self::VllmBench,
            ToolName::Guidellm => Self::Guidellm,
        }
    }
}

/// Arguments of `goodput import`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The tool that measured
    #[arg(value_enum)]
    tool: ToolName,
    /// Exports; `ARM=FILE` names the arm, and the first arm is the floor
    #[arg(value_name = "[ARM=]FILE", required = true)]
    files: Vec<String>,
    /// Run directory to write; it must not exist
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Accelerators behind each arm
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    accelerators: u64,
    /// Largest TTFT of a good request, ms
    #[arg(long, value_name = "MS")]
    ttft_ms: f64,
    /// Largest TPOT of a good request, ms per token
    #[arg(long, value_name = "MS")]
    tpot_ms: f64,
    /// Where the two bounds come from
    #[arg(long, value_name = "TEXT")]
    slo_origin: String,
    /// Offered rate, where the export names none (AIPerf), requests per second
    #[arg(long, value_name = "RPS")]
    rate: Option<f64>,
    /// Good-fraction that a rate must reach
    #[arg(long, value_name = "SHARE", default_value_t = 0.9)]
    target: f64,
    /// Name of the campaign
    #[arg(long, value_name = "NAME", default_value = "imported")]
    name: String,
    /// Print import.json
    #[arg(long)]
    json: bool,
}

/// Arm of a file that names none.
const ARM: &str = "imported";

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let request = Request {
        tool: args.tool.into(),
        arms: arms(&args.files),
        name: args.name.clone(),
        slo: Slo { ttft_ms: args.ttft_ms, tpot_ms: args.tpot_ms, origin: args.slo_origin.clone() },
        target: args.target,
        accelerators: args.accelerators,
        rate_rps: args.rate,
    };
    let imported = import(&request)?;
    write(&imported, &args.out)?;
    let mut out = std::io::stdout().lock();
    if args.json {
        out.write_all(&to_json(&imported.import)?)?;
    } else {
        out.write_all(summary(&imported, args).as_bytes())?;
    }
    Ok(ExitCode::SUCCESS)
}

/// `ARM=FILE`, unless a file of that whole name is there.
fn arms(files: &[String]) -> Vec<Arm> {
    let mut arms: Vec<Arm> = Vec::new();
    for text in files {
        let named = text.split_once('=').filter(|_| !PathBuf::from(text).exists());
        let (name, file) = named.unwrap_or((ARM, text));
        match arms.iter_mut().find(|arm| arm.name == name) {
            Some(arm) => arm.files.push(file.into()),
            None => arms.push(Arm { name: name.to_owned(), files: vec![file.into()] }),
        }
    }
    arms
}

fn summary(imported: &Imported, args: &Args) -> String {
    let import = &imported.import;
    let version = import.tool_version.as_deref().map(|it| format!(" {it}")).unwrap_or_default();
    let mut text = format!("imported from {}{version} into {}\n", import.tool, args.out.display());
    for file in &import.files {
        text += &format!("  {}: {}\n", file.path.display(), file.repetitions.join(", "));
    }
    for rep in &imported.repetitions {
        let failed = rep.records.iter().filter(|row| !row.class.is_delivered()).count();
        let (run, n) = (&rep.run, rep.records.len());
        text += &format!(
            "  {} r{} rep{}: {n} requests, {failed} failed\n",
            run.arm, run.rate_rps, run.repetition
        );
    }
    text += "the export cannot prove:\n";
    let (hard, soft): (Vec<_>, Vec<_>) =
        import.lacks.iter().partition(|entry| Lack::discards(entry.evidence));
    for (effect, entries) in [("bars publication", hard), ("footnote", soft)] {
        for entry in entries {
            text += &format!("  {} ({effect}): {}\n", entry.evidence.name(), entry.why);
        }
    }
    text + &format!("next: goodput verify {}\n", args.out.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_one_arm_are_its_repetitions() {
        let names = ["a.json", "aware=b.json", "c.json", "aware=d=e.json"].map(str::to_owned);
        let arms = arms(&names);
        let files = |nth: usize| arms[nth].files.iter().map(|it| it.display().to_string());
        assert_eq!((arms[0].name.as_str(), arms[1].name.as_str()), ("imported", "aware"));
        assert_eq!(files(0).collect::<Vec<_>>(), ["a.json", "c.json"]);
        assert_eq!(files(1).collect::<Vec<_>>(), ["b.json", "d=e.json"]);
    }
}
