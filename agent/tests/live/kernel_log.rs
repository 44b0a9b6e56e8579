//! The kernel programs' own log.

use std::net::{TcpListener, TcpStream};
use std::sync::Mutex;
use std::time::Duration;

use agent::capture::CaptureSource as _;
use agent::capture::tcx::{Method, TcxSource};

use crate::support::{config, kernel_available};

static LINES: Mutex<Vec<String>> = Mutex::new(Vec::new());

struct Keep;

impl log::Log for Keep {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        LINES.lock().unwrap().push(record.args().to_string());
    }

    fn flush(&self) {}
}

#[test]
fn the_kernel_log_tells_of_connections_when_it_is_on() {
    if !kernel_available("kernel log") {
        return;
    }
    log::set_logger(&Keep).unwrap();
    log::set_max_level(log::LevelFilter::Info);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = listener.local_addr().unwrap();
    let mut config = config(endpoint, Method::Tcx);
    config.kernel_log = true;
    let mut source = TcxSource::open(&config).unwrap();
    drop(TcpStream::connect(endpoint).unwrap());
    source.poll(Duration::from_secs(5), &mut |_| {}).unwrap();
    let port = endpoint.port();
    let lines = LINES.lock().unwrap();
    let connecting = format!("to {port}: state 7 to 2");
    assert!(
        lines.iter().any(|it| it.starts_with("socket ") && it.ends_with(&connecting)),
        "{lines:?}"
    );
}
