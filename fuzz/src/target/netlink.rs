//! Answers of the kernel to a dump of its sockets (inet_diag).

use agent::sockdiag::dumped_sockets;

/// The first four bytes are the sequence number that is waited for.
pub(super) fn run(input: &[u8]) {
    let Some((sequence, datagram)) = input.split_first_chunk::<4>() else { return };
    if let Ok(sockets) = dumped_sockets(datagram, u32::from_ne_bytes(*sequence)) {
        // A socket's message has a header of 16 bytes and a body of 72.
        assert!(sockets <= datagram.len() / 88, "more sockets than fit");
    }
}

pub(super) fn seeds() -> Vec<Vec<u8>> {
    let info = [&104_u16.to_ne_bytes()[..], &2_u16.to_ne_bytes(), &[9; 104]].concat();
    let v6only = [&5_u16.to_ne_bytes()[..], &11_u16.to_ne_bytes(), &[1, 0, 0, 0]].concat();
    let socket = |family: u8| {
        let mut body = vec![family, 1, 0, 0];
        body.extend(8_000_u16.to_be_bytes());
        body.extend(40_000_u16.to_be_bytes());
        body.resize(72, 3);
        body
    };
    let bodies = [
        message(20, 2, &[socket(2), info.clone()].concat()),
        message(20, 0x12, &[socket(10), v6only, info].concat()),
        message(3, 2, &[0; 4]),
        message(2, 0, &(-1_i32).to_ne_bytes()),
    ];
    let dump = bodies[..3].concat();
    let all = bodies.into_iter().chain([dump]);
    all.map(|bytes| [&7_u32.to_ne_bytes()[..], &bytes].concat()).collect()
}

fn message(kind: u16, flags: u16, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(16 + body.len()).unwrap_or(0);
    let mut bytes = length.to_ne_bytes().to_vec();
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(flags.to_ne_bytes());
    bytes.extend(7_u32.to_ne_bytes());
    bytes.extend(0_u32.to_ne_bytes());
    bytes.extend(body);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}
