//! The kernel programs of this process, as the kernel describes them.

use serde::Serialize;

/// One loaded program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Program {
    /// `sched_cls`, `socket_filter`, `tracepoint`, or the number of the program type
    /// (`include/uapi/linux/bpf.h`, `enum bpf_prog_type`).
    pub kind: String,
    /// Instructions that the verifier followed.
    pub verified_instructions: u64,
}

fn field(text: &str, key: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':')?.trim().parse().ok())
}

fn program(text: &str) -> Option<(u64, Program)> {
    let id = field(text, "prog_id")?;
    // A link names its program, too, but has no type of program.
    let kind = match field(text, "prog_type")? {
        1 => "socket_filter".to_owned(),
        3 => "sched_cls".to_owned(),
        5 => "tracepoint".to_owned(),
        other => other.to_string(),
    };
    let verified_instructions = field(text, "verified_insns").unwrap_or(0);
    Some((id, Program { kind, verified_instructions }))
}

/// Every program that this process holds, by id; none where `/proc` does not tell.
pub(super) fn loaded() -> Vec<Program> {
    let Ok(entries) = std::fs::read_dir("/proc/self/fdinfo") else { return Vec::new() };
    let texts = entries.flatten().flat_map(|entry| std::fs::read_to_string(entry.path()));
    let by_id: std::collections::BTreeMap<_, _> = texts.filter_map(|text| program(&text)).collect();
    by_id.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_read_and_a_link_is_not() {
        let text = "pos:\t0\nprog_type:\t3\nprog_id:\t7\nrun_cnt:\t0\nverified_insns:\t1150\n";
        let expected = Program { kind: "sched_cls".to_owned(), verified_instructions: 1150 };
        assert_eq!(program(text), Some((7, expected)));
        assert_eq!(program("link_type:\ttcx\nprog_id:\t7\n"), None);
    }
}
