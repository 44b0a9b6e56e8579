//! What the other phases of the synthetic campaign left: every target healthy, the gateway in its mode.

use std::fs;
use std::io::{BufWriter, Write as _};
use std::path::Path;

use serde_json::{Value, json};

use analyzer::records::Versioned as _;
use analyzer::rundir::{ReadinessRow, TargetKind};

use crate::campaign::{ARMS, START_NS};

const TARGETS: [(&str, TargetKind); 3] = [
    ("http://127.0.0.1:1", TargetKind::Vip),
    ("http://127.0.0.1:2", TargetKind::Vip),
    ("127.0.0.1:3", TargetKind::Backend),
];

/// Phase 0, phase 2, and the readiness of every target in each second of the windows.
pub(crate) fn write(root: &Path, seconds: u64) -> anyhow::Result<()> {
    fs::write(root.join("health.json"), serde_json::to_vec(&health())?)?;
    fs::create_dir_all(root.join("probe"))?;
    for arm in ARMS {
        let path = root.join("probe").join(format!("{arm}.json"));
        fs::write(path, serde_json::to_vec(&probe(arm))?)?;
    }
    let mut lines = BufWriter::new(fs::File::create(root.join("health.jsonl"))?);
    for second in 0..=seconds {
        for (target, kind) in TARGETS {
            let row = ReadinessRow {
                schema: ReadinessRow::SCHEMA.to_owned(),
                at_ns: START_NS + second * 1_000_000_000,
                target: target.to_owned(),
                kind,
                ok: true,
                status: Some(200),
                detail: None,
            };
            writeln!(lines, "{}", serde_json::to_string(&row)?)?;
        }
    }
    Ok(lines.flush()?)
}

fn health() -> Value {
    let vips = ARMS.map(|arm| {
        json!({
            "arm": arm, "vip": "http://127.0.0.1:1", "ok": true, "status": 200, "class": "ok",
            "detail": "",
        })
    });
    let backend = json!({
        "address": "127.0.0.1:3", "ok": true, "models": ["m"], "max_model_len": null, "detail": "",
    });
    json!({"schema": "goodput.health/1", "ok": true, "vips": vips, "backends": [backend]})
}

fn probe(arm: &str) -> Value {
    json!({
        "schema": "goodput.probe/1", "arm": arm, "seconds": 10.0, "requests": 100,
        "completed": 100, "concentration": {"backend": {"outcome": "idle"}},
        "gateway": gateway(arm),
    })
}

/// A gateway that confirms the mode, with counters that say nothing of prefixes.
pub(crate) fn gateway(arm: &str) -> Value {
    let readback = json!({
        "found": true, "sel": null, "mode": null, "kv_exact_mode": null, "lb_mode": null,
        "log_line": null, "endpoints": [], "problems": [],
    });
    json!({
        "schema": "goodput.gateway/1", "arm": arm, "expected": {}, "readback": readback,
        "readback_after": readback, "mismatches": [],
        "before": {"outcome": "answered", "series": {"other": 0.0}},
        "after": {"outcome": "answered", "series": {"other": 1.0}},
        "repeated_prefix_requests": 80,
    })
}
