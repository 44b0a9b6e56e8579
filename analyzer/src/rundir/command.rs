//! The command that continues a run.

use std::path::Path;

/// `goodput run ... --resume`, to be pasted into a shell.
#[must_use]
pub fn resume_command(
    campaign: &Path,
    run_dir: &Path,
    repetitions: Option<u32>,
    without_agent: bool,
) -> String {
    let repetitions = repetitions.map(|n| format!(" --repetitions {n}")).unwrap_or_default();
    let without = if without_agent { " --without-agent" } else { "" };
    format!(
        "goodput run {} --run-dir {} --resume{repetitions}{without}",
        quoted(campaign),
        quoted(run_dir)
    )
}

/// A path as one word of a shell.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    shlex::try_quote(&text).map_or_else(|_| text.clone(), |quoted| quoted.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stay_one_word() {
        let command = resume_command(Path::new("my plan.toml"), Path::new("runs/a"), Some(7), true);
        assert_eq!(
            command,
            "goodput run 'my plan.toml' --run-dir runs/a --resume --repetitions 7 --without-agent"
        );
        let words = shlex::split(&command).unwrap();
        assert_eq!(words[2], "my plan.toml");
    }
}
