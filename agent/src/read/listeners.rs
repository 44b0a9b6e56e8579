//! Servers in a capture, for whoever does not know them yet.

use std::collections::BTreeMap;
use std::io::Read;
use std::net::SocketAddr;

use serde::Serialize;

use crate::capture::pcap::{OpenError, Packet, Reader, parse};

/// Servers listed at most: a port scan must not fill memory.
const MAX_LISTENERS: usize = 4096;
/// How an HTTP/1 response begins (RFC 9112, section 4).
const RESPONSE: &[u8] = b"HTTP/1.";

/// An address that answered as a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Listener {
    /// Its address.
    pub address: SocketAddr,
    /// Connections that it accepted (SYN with ACK), repetitions included.
    pub accepted: u64,
    /// Segments from it that begin like an HTTP/1 response.
    pub http_responses: u64,
}

/// The servers of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Listeners {
    /// Those with the most HTTP responses first, then those with the most connections.
    pub listeners: Vec<Listener>,
    /// Servers beyond the bound were left out.
    pub cut: bool,
}

/// Lists the servers of a file by two signs: they accept connections, or send HTTP responses.
///
/// # Errors
/// When it is no capture.
pub fn find_listeners<R: Read>(
    file: R,
    progress: &mut dyn FnMut(u64),
) -> Result<Listeners, OpenError> {
    let mut reader = Reader::open(file)?;
    let mut found = BTreeMap::new();
    let mut cut = false;
    // A torn file holds what it holds: reading it for its streams says so.
    while reader.advance().unwrap_or(false) {
        let packet = reader.frame().map(|frame| parse(&frame));
        if let Some(Ok(packet)) = packet {
            cut |= !note(&mut found, &packet);
        }
        progress(reader.position());
    }
    let mut listeners: Vec<Listener> = found.into_values().collect();
    listeners.sort_by_key(|it| std::cmp::Reverse((it.http_responses, it.accepted)));
    Ok(Listeners { listeners, cut })
}

/// False when there is no room for a further one.
fn note(found: &mut BTreeMap<SocketAddr, Listener>, packet: &Packet<'_>) -> bool {
    let accepts = packet.flags.syn() && packet.flags.ack();
    let responds = packet.payload.starts_with(RESPONSE);
    if !accepts && !responds {
        return true;
    }
    let address = packet.source;
    if found.len() >= MAX_LISTENERS && !found.contains_key(&address) {
        return false;
    }
    let new = Listener { address, accepted: 0, http_responses: 0 };
    let listener = found.entry(address).or_insert(new);
    listener.accepted += u64::from(accepts);
    listener.http_responses += u64::from(responds);
    true
}
