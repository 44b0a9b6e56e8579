//! The targets by name.

mod capture;
mod events;
mod files;
mod http;
mod import;
mod netlink;
mod openai;
mod prompt;
mod sse;

/// A decoder and what it is tried with.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Its name on the command line.
    pub name: &'static str,
    /// Decodes `bytes` and panics when the result contradicts itself.
    pub run: fn(bytes: &[u8]),
    /// Inputs from which damage starts.
    pub seeds: fn() -> Vec<Vec<u8>>,
}

/// Every target.
pub const TARGETS: [Target; 14] = [
    Target { name: "http_request", run: http::request, seeds: http::request_seeds },
    Target { name: "http_response", run: http::response, seeds: http::response_seeds },
    Target { name: "timeline", run: http::timeline, seeds: http::response_seeds },
    Target { name: "sse", run: sse::run, seeds: sse::seeds },
    Target { name: "openai", run: openai::run, seeds: openai::seeds },
    Target { name: "prompt", run: prompt::run, seeds: prompt::seeds },
    Target { name: "pcap", run: capture::run, seeds: capture::seeds },
    Target { name: "events", run: events::run, seeds: events::seeds },
    Target { name: "netlink", run: netlink::run, seeds: netlink::seeds },
    Target { name: "campaign", run: files::campaign, seeds: files::campaign_seeds },
    Target { name: "trace", run: files::trace, seeds: files::trace_seeds },
    Target { name: "records", run: files::records, seeds: files::record_seeds },
    Target { name: "import", run: import::run, seeds: import::seeds },
    Target { name: "settings", run: files::settings, seeds: files::settings_seeds },
];

/// The target called `name`.
#[must_use]
pub fn find(name: &str) -> Option<Target> {
    TARGETS.into_iter().find(|target| target.name == name)
}
