//! Writes the seeds of every target into folders of its own below the folder given, and prints the names.

use std::path::PathBuf;

use anyhow::Context as _;

fn main() -> anyhow::Result<()> {
    let folder = std::env::args_os().nth(1).context("usage: fuzz-seeds FOLDER")?;
    for target in fuzz::TARGETS {
        let folder = PathBuf::from(&folder).join(target.name);
        std::fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
        for (number, seed) in (target.seeds)().iter().enumerate() {
            std::fs::write(folder.join(format!("seed-{number:03}")), seed)?;
        }
        println!("{}", target.name);
    }
    Ok(())
}
