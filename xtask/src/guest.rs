//! A guest that runs the agent and powers off: kernel, initramfs, QEMU, and what its console said.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use serde_json::Value;

use crate::packages;
use crate::process::{check, display, root};

/// Software emulation takes about half a minute; far beyond that the guest hangs.
const PATIENCE: Duration = Duration::from_secs(240);

/// What a guest answered.
#[derive(Debug, Default)]
pub(crate) struct Verdict {
    pub(crate) kernel: String,
    pub(crate) source: String,
    pub(crate) checks: usize,
    /// Type and instructions that the verifier followed.
    pub(crate) programs: Vec<(String, u64)>,
    pub(crate) seconds: f64,
    /// Everything that is not right.
    pub(crate) faults: Vec<String>,
}

fn folder() -> PathBuf {
    root().join("target/kernels")
}

fn apt(program: &str, folder: &Path) -> Command {
    let mut command = Command::new(program);
    command.args(["-o", "Dir::Etc::sourceparts=-", "-o", "APT::Sandbox::User=root"]);
    command
        .arg("-o")
        .arg(format!("Dir::Etc::sourcelist={}", folder.join("sources.list").display()));
    command.arg("-o").arg(format!("Dir::State::lists={}", folder.join("lists").display()));
    command
}

/// The kernel image of a series, downloaded once. Package lists of its own: the system's stay as
/// they are, and have no backports.
pub(crate) fn image(series: &str) -> anyhow::Result<PathBuf> {
    packages::ensure(&[
        ("qemu-system-x86_64", "qemu-system-x86"),
        ("busybox", "busybox-static"),
        ("cpio", "cpio"),
    ])?;
    let folder = folder();
    let unpacked = folder.join(series);
    if let Some(image) = image_in(&unpacked)? {
        return Ok(image);
    }
    fs::create_dir_all(folder.join("lists/partial"))?;
    let (site, _) = packages::repository()?;
    let sources = format!("deb {site} bookworm main\ndeb {site} bookworm-backports main\n");
    fs::write(folder.join("sources.list"), sources)?;
    check(apt("apt-get", &folder).args(["update", "-q"]))?;
    let package = newest(series, &folder)?;
    eprintln!("downloading {package}");
    let archives = unpacked.join("archive");
    fs::create_dir_all(&archives)?;
    check(apt("apt-get", &folder).args(["download", "-q", &package]).current_dir(&archives))?;
    for archive in fs::read_dir(&archives)? {
        check(Command::new("dpkg").arg("-x").arg(archive?.path()).arg(&unpacked))?;
    }
    image_in(&unpacked)?.with_context(|| format!("{package} holds no kernel image"))
}

fn image_in(unpacked: &Path) -> anyhow::Result<Option<PathBuf>> {
    let Ok(entries) = fs::read_dir(unpacked.join("boot")) else { return Ok(None) };
    for entry in entries {
        let path = entry?.path();
        if path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("vmlinuz")) {
            return Ok(Some(path));
        }
    }
    Ok(None)
}

/// The newest cloud kernel of a series (small, every driver that a guest needs built in).
fn newest(series: &str, folder: &Path) -> anyhow::Result<String> {
    let pattern = format!(r"^linux-image-{}\..*cloud-amd64$", series.replace('.', r"\."));
    let out = apt("apt-cache", folder).args(["search", "--names-only", &pattern]).output()?;
    let text = String::from_utf8_lossy(&out.stdout);
    let names = text.lines().filter_map(|line| line.split(' ').next());
    let newest = names.max_by_key(|name| numbers(name));
    let newest = newest.with_context(|| {
        format!("Debian has no linux-image-{series}*-cloud-amd64; mend: name another --kernel")
    })?;
    Ok(newest.to_owned())
}

/// The numbers in a name, for ordering versions.
fn numbers(name: &str) -> Vec<u64> {
    name.split(|it: char| !it.is_ascii_digit()).flat_map(str::parse).collect()
}

/// What the guest runs: the answers stand between markers, since the kernel may write in between.
fn init(source: &str) -> String {
    format!(
        "#!/bin/busybox sh\n\
         /bin/busybox mount -t proc proc /proc\n\
         /bin/busybox mount -t sysfs sysfs /sys\n\
         /bin/busybox mount -t tracefs tracefs /sys/kernel/tracing\n\
         /bin/busybox ifconfig lo 127.0.0.1 up\n\
         echo \"@@kernel $(/bin/busybox uname -r)\"\n\
         echo \"@@doctor $(/goodput-agent doctor --json)\"\n\
         echo \"@@selftest $(/goodput-agent selftest --source {source} --json 2>/error)\"\n\
         echo \"@@error $(/bin/busybox cat /error)\"\n\
         echo @@end\n\
         /bin/busybox poweroff -f\n"
    )
}

fn initramfs(agent: &Path, source: &str) -> anyhow::Result<PathBuf> {
    let tree = folder().join("initramfs");
    for place in ["bin", "proc", "sys", "dev", "tmp"] {
        fs::create_dir_all(tree.join(place))?;
    }
    let busybox =
        ["/bin/busybox", "/usr/bin/busybox"].into_iter().find(|it| Path::new(it).exists());
    fs::copy(busybox.context("busybox is not installed")?, tree.join("bin/busybox"))?;
    fs::copy(agent, tree.join("goodput-agent"))?;
    let script = tree.join("init");
    fs::write(&script, init(source))?;
    check(Command::new("chmod").arg("755").arg(&script))?;
    let archive = folder().join("initramfs.cpio");
    let mut shell = Command::new("sh");
    shell
        .args(["-c", "find . | cpio --quiet -o -H newc > \"$0\""])
        .arg(&archive)
        .current_dir(&tree);
    check(&mut shell)?;
    Ok(archive)
}

/// Boots a kernel with the agent in it and reads what it says.
pub(crate) fn boot(image: &Path, agent: &Path, source: &str) -> anyhow::Result<Verdict> {
    let initramfs = initramfs(agent, source)?;
    let kernel = image.file_name().unwrap_or_default().to_string_lossy();
    let console = folder().join(format!("console-{kernel}-{source}.log"));
    let mut command = Command::new("qemu-system-x86_64");
    command
        // QEMU 7.2 leaves wrong flags (the direction flag among them) behind cmpxchg16b, which kernels
        // use in every allocation where the CPU has it: guests broke at random.
        .args(["-accel", "tcg", "-cpu", "qemu64,-cx16", "-m", "512", "-smp", "1", "-nographic"])
        .args(["-no-reboot", "-nodefaults", "-serial"])
        .arg(format!("file:{}", console.display()))
        .arg("-kernel")
        .arg(image)
        .arg("-initrd")
        .arg(initramfs)
        .args(["-append", "console=ttyS0 panic=-1 oops=panic quiet"])
        .stdin(Stdio::null());
    let started = Instant::now();
    eprintln!("booting {}", image.display());
    wait(&mut command)?;
    let text = String::from_utf8_lossy(&fs::read(&console)?).into_owned();
    let mut verdict = judge(&text);
    verdict.seconds = started.elapsed().as_secs_f64();
    if !verdict.faults.is_empty() {
        verdict.faults.push(format!("the console is in {}", console.display()));
    }
    Ok(verdict)
}

fn wait(command: &mut Command) -> anyhow::Result<()> {
    let line = display(command);
    let mut guest = command.spawn().with_context(|| format!("cannot start `{line}`"))?;
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(status) = guest.try_wait()? {
            if status.success() {
                return Ok(());
            }
            bail!("`{line}` failed: {status}");
        }
        if Instant::now() > deadline {
            guest.kill()?;
            guest.wait()?;
            eprintln!("the guest did not power off within {} s", PATIENCE.as_secs());
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Judges a console; whatever is missing is a fault.
fn judge(console: &str) -> Verdict {
    let mut verdict = Verdict {
        kernel: marked(console, "kernel").unwrap_or_default().to_owned(),
        ..Verdict::default()
    };
    let json =
        |name| marked(console, name).and_then(|text| serde_json::from_str::<Value>(text).ok());
    match json("doctor") {
        Some(doctor) if doctor["ready"] == true => {}
        Some(doctor) => verdict.faults.push(format!("doctor: {}", failing(&doctor))),
        None => verdict.faults.push("doctor gave no answer".to_owned()),
    }
    match json("selftest") {
        Some(report) => take_report(&report, &mut verdict),
        None => {
            let error = marked(console, "error").unwrap_or("the guest did not get there");
            verdict.faults.push(format!("selftest gave no answer: {error}"));
        }
    }
    verdict
}

/// What the doctor says is missing.
fn failing(doctor: &Value) -> String {
    let rows = doctor["rows"].as_array().into_iter().flatten();
    let failed = rows.filter(|row| row["state"] == "fail");
    failed.map(|row| format!("{}: {}; ", row["check"], row["found"])).collect()
}

fn take_report(report: &Value, verdict: &mut Verdict) {
    let text = |value: &Value| value.as_str().unwrap_or("unknown").to_owned();
    verdict.source = text(&report["source"]);
    let checks = report["checks"].as_array().map(Vec::as_slice).unwrap_or_default();
    verdict.checks = checks.len();
    let wrong = checks.iter().filter(|check| check["ok"] != true);
    verdict.faults.extend(wrong.map(|check| {
        format!(
            "{}: expected {}, observed {}",
            text(&check["name"]),
            check["expected"],
            check["observed"]
        )
    }));
    if report["passed"] != true {
        verdict.faults.push("the self-test did not pass".to_owned());
    }
    let programs = report["programs"].as_array().map(Vec::as_slice).unwrap_or_default();
    verdict.programs = programs
        .iter()
        .map(|it| (text(&it["kind"]), it["verified_instructions"].as_u64().unwrap_or(0)))
        .collect();
}

/// What follows a marker on its line.
fn marked<'a>(console: &'a str, name: &str) -> Option<&'a str> {
    let marker = format!("@@{name} ");
    console.lines().find_map(|line| line.split_once(&marker)).map(|(_, rest)| rest.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "[0.1] boot\r\n@@kernel 6.1.0-50-cloud-amd64\r\n@@doctor {\"ready\":true}\r\n\
        @@selftest {\"source\":\"tcx\",\"passed\":true,\"checks\":[{\"name\":\"a\",\"ok\":true}],\
        \"programs\":[{\"kind\":\"sched_cls\",\"verified_instructions\":1150}]}\r\n@@error \r\n@@end\r\n";

    #[test]
    fn a_good_console_has_no_fault() {
        let verdict = judge(GOOD);
        assert_eq!(verdict.faults, Vec::<String>::new());
        assert_eq!((verdict.kernel.as_str(), verdict.checks), ("6.1.0-50-cloud-amd64", 1));
        assert_eq!(verdict.programs, [("sched_cls".to_owned(), 1150)]);
    }

    #[test]
    fn a_wrong_missing_or_silent_answer_is_a_fault() {
        for console in [
            String::new(),
            GOOD.replace("\"ready\":true", "\"ready\":false"),
            GOOD.replace("\"ok\":true", "\"ok\":false"),
            GOOD.replace("\"passed\":true", "\"passed\":false"),
            GOOD.replace("@@selftest {", "@@selftest "),
        ] {
            assert!(!judge(&console).faults.is_empty(), "{console}");
        }
    }

    #[test]
    fn versions_are_ordered_by_number() {
        assert!(numbers("linux-image-6.1.0-9-cloud") < numbers("linux-image-6.1.0-50-cloud"));
    }
}
