//! `simfleet example`: a commented fleet file.

use std::io::Write;

/// The file that docs/simulator.md explains.
const EXAMPLE: &str = include_str!("example.toml");

pub(crate) fn run() -> anyhow::Result<()> {
    std::io::stdout().write_all(EXAMPLE.as_bytes())?;
    Ok(())
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_example_is_a_valid_fleet() {
        let fleet = simfleet::FleetConfig::from_toml(super::EXAMPLE).unwrap();
        assert_eq!((fleet.backends.len(), fleet.gateways.len()), (4, 2));
    }
}
