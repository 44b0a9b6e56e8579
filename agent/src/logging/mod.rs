//! Log lines that nothing from the wire can forge or multiply.

mod escape;
mod limit;

use escape::line;
pub use escape::{EscapedWriter, Escaping, printable};
pub use limit::{Kind, Limits, RateLimit, Verdict};

use std::fmt::Debug;
use std::io::{self, Write};

use tracing::field::Field;
use tracing_subscriber::field::MakeExt as _;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::fmt::format::{self, Writer};
use tracing_subscriber::layer::{Layer, SubscriberExt as _};
use tracing_subscriber::{EnvFilter, Registry};

/// Where log lines go, once they are filtered, limited and escaped. Colours are for terminals.
pub fn subscriber<W>(
    filter: EnvFilter,
    colours: bool,
    writer: W,
) -> impl tracing::Subscriber + Send + Sync
where
    W: for<'a> MakeWriter<'a> + Clone + Send + Sync + 'static,
{
    let left_out = writer.clone();
    let tell = move |line: &str| -> io::Result<()> { writeln!(left_out.make_writer(), "{line}") };
    let lines = tracing_subscriber::fmt::layer()
        .with_ansi(colours)
        .fmt_fields(format::debug_fn(field).delimited(" "))
        .with_writer(Escaping::new(writer, colours))
        .with_filter(RateLimit::new(Limits::default(), tell));
    Registry::default().with(filter).with(lines)
}

/// A field, its value escaped: among colours the writer can't tell a value's sequences from the
/// formatter's.
fn field(writer: &mut Writer<'_>, field: &Field, value: &dyn Debug) -> std::fmt::Result {
    let value = format!("{value:?}");
    let value = line(&value);
    match field.name() {
        "message" => write!(writer, "{value}"),
        // Where the bridge from the crate `log` says the line came from.
        name if name.starts_with("log.") => Ok(()),
        name => write!(writer, "{name}={value}"),
    }
}

#[cfg(test)]
mod tests;
