//! The log line in which LoxiLB names its prefix-routing mode.

/// Mode and line of the newest line that names one:
/// `[KV_INV] LB mode = "hard" (LOXILB_KV_LB_MODE)`. It is written once, at the first lookup.
#[must_use]
pub fn mode_line(log: &str) -> Option<(String, String)> {
    log.lines().rev().find_map(|line| {
        let rest = line.split_once("[KV_INV] LB mode = \"")?.1;
        let (mode, _) = rest.split_once('"')?;
        Some((mode.to_owned(), line.to_owned()))
    })
}
