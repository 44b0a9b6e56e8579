//! The same bytes in any segmentation, order and multiplicity give the same observation, and a loss
//! anywhere gives the same verdict or none.

use proptest::prelude::*;
use protocol::ResponseTimeline;
use protocol::http1::{Framing, Method};

use super::*;

/// Two requests and their responses, as bytes of each direction.
fn requests() -> Vec<u8> {
    [post(1, "hello"), post(2, "hello again")].concat()
}

fn responses() -> Vec<u8> {
    [stream(3), stream(5)].concat()
}

/// `bytes` cut at `cuts` into segments of one direction.
fn segments(from_endpoint: bool, bytes: &[u8], cuts: &[usize]) -> Vec<Packet> {
    let mut bounds: Vec<_> = cuts.iter().map(|cut| cut % bytes.len()).collect();
    bounds.extend([0, bytes.len()]);
    bounds.sort_unstable();
    bounds.dedup();
    let first: u32 = if from_endpoint { 0xffff_ff00 } else { 0xffff_fff0 };
    let one = |pair: &[usize]| {
        let seq = first.wrapping_add(u32::try_from(pair[0]).unwrap());
        let mut packet = Packet::new(0, from_endpoint, seq, 0, &bytes[pair[0]..pair[1]]);
        packet.flags = 0;
        packet
    };
    bounds.windows(2).map(one).collect()
}

/// Moves each packet by up to `reach` places, repeats some, and stamps them in that order.
fn disturb(packets: &mut Vec<Packet>, shuffle: &[u8], start: u64) {
    let reach = 6;
    for (at, by) in shuffle.iter().enumerate() {
        let from = at % packets.len();
        let to = (from + usize::from(*by) % reach).min(packets.len() - 1);
        packets.swap(from, to);
        if by % 5 == 0 {
            let again = packets[from].clone();
            packets.insert(to, again);
        }
    }
    for (at, packet) in packets.iter_mut().enumerate() {
        packet.stamp = start + 10 * u64::try_from(at).unwrap();
    }
}

/// The instant at which each byte of a direction could be read: the latest first sight of any byte
/// up to it.
fn readable(packets: &[Packet], len: usize, first: u32) -> Vec<u64> {
    let mut seen = vec![u64::MAX; len];
    for packet in packets {
        let start = packet.seq.wrapping_sub(first) as usize;
        for stamp in &mut seen[start..start + packet.payload.len()] {
            *stamp = packet.stamp.min(*stamp);
        }
    }
    let mut latest = 0;
    seen.into_iter()
        .map(|stamp| {
            latest = latest.max(stamp);
            latest
        })
        .collect()
}

/// What a reader that gets every byte at its instant makes of the responses.
fn expected(bytes: &[u8], stamps: &[u64]) -> Vec<protocol::TimelineRecord> {
    let mut records = Vec::new();
    let mut timeline = ResponseTimeline::new(Method::Post);
    for (byte, stamp) in bytes.iter().zip(stamps) {
        if timeline.feed(&[*byte], Nanos::new(*stamp)).complete {
            let next = ResponseTimeline::new(Method::Post);
            records.push(std::mem::replace(&mut timeline, next).into_record());
        }
    }
    records
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn any_segmentation_order_and_repetition_gives_the_same_observation(
        request_cuts in prop::collection::vec(any::<usize>(), 0..12),
        response_cuts in prop::collection::vec(any::<usize>(), 0..40),
        shuffle in prop::collection::vec(any::<u8>(), 0..30),
    ) {
        let mut handshake = Talk::open_at(0xffff_fff0, 0xffff_ff00, 0).packets;
        let mut up = segments(false, &requests(), &request_cuts);
        let mut down = segments(true, &responses(), &response_cuts);
        disturb(&mut up, &shuffle, 10_000);
        disturb(&mut down, &shuffle, 20_000);
        handshake.extend(up.iter().chain(&down).cloned());
        let mut told = Told::of(&handshake);
        told.flush();
        let stamps = readable(&down, responses().len(), 0xffff_ff00);
        let expected = expected(&responses(), &stamps);
        prop_assert_eq!(told.finished.len(), 2);
        for (exchange, expected) in told.finished.iter().zip(&expected) {
            prop_assert_eq!(&exchange.response, expected);
            prop_assert_eq!(Outcome::of(exchange), Outcome::Ok);
        }
        let stamps = readable(&up, requests().len(), 0xffff_fff0);
        let first_len = post(1, "hello").len();
        prop_assert_eq!(told.finished[0].request_end, ns(stamps[first_len - 1]));
        prop_assert_eq!(told.finished[1].request_first, ns(stamps[first_len]));
        prop_assert_eq!(told.finished[1].request_end, ns(stamps[stamps.len() - 1]));
        prop_assert_eq!(told.table.stats().gaps, 0);
        prop_assert_eq!(told.table.parked_cost(), 0);
    }

    #[test]
    fn a_loss_anywhere_gives_the_same_verdict_or_none(
        cuts in prop::collection::vec(any::<usize>(), 1..20),
        lost in prop::collection::vec(any::<usize>(), 1..6),
        case in 0..protocol::cases::cases().len(),
        uncopied in any::<bool>(),
    ) {
        let case = &protocol::cases::cases()[case];
        let bytes: Vec<u8> = case.steps.iter().flat_map(|step| step.bytes.clone()).collect();
        prop_assume!(!bytes.is_empty());
        let mut talk = Talk::open_at(0xffff_fff0, 0xffff_ff00, 0);
        talk.request(&post(1, "hello"));
        let handshake = talk.packets.len();
        for packet in segments(true, &bytes, &cuts) {
            talk.response(&packet.payload);
        }
        talk.client_fin().endpoint_fin();
        let whole = Told::of(&talk.packets).one();
        let responses = talk.packets.len() - 2 - handshake;
        let mut gone: Vec<_> = lost.iter().map(|at| handshake + at % responses).collect();
        gone.sort_unstable();
        gone.dedup();
        for at in gone.into_iter().rev() {
            if uncopied {
                talk.packets[at].payload.clear();
            } else {
                talk.packets.remove(at);
            }
        }
        let mut told = Told::of(&talk.packets);
        told.settle(talk.stamp + 10_000_000_000);
        for exchange in &told.finished {
            let framing = exchange.framing();
            if let Framing::Invalid { .. } = framing {
                prop_assert_eq!(framing, whole.framing(), "{}", case.name);
            }
        }
        prop_assert_eq!(told.started.len(), told.ended.len());
        prop_assert_eq!(told.table.connections(), 0);
    }
}

#[test]
fn every_scripted_case_gets_the_right_answer_from_segments() {
    use protocol::cases::{End, Expected};
    for case in protocol::cases::cases() {
        let mut talk = Talk::open_at(1000, 5000, 0);
        talk.stamp = 1_000_000_000 - 1000;
        talk.request(&post(1, "hello"));
        let sent = talk.stamp;
        let at = |ms: u64| sent + ms * 1_000_000;
        for step in &case.steps {
            talk.response(&step.bytes);
            talk.last().stamp = at(step.at_ms);
        }
        match case.end {
            End::KeepAlive => {}
            End::Close(ms) => {
                talk.endpoint_fin();
                talk.last().stamp = at(ms);
            }
            End::Reset(ms) => {
                talk.reset(true);
                talk.last().stamp = at(ms);
            }
        }
        let mut told = Told::of(&talk.packets);
        told.flush();
        let Some(exchange) = told.finished.first() else {
            // An open connection with an unfinished response: the caller's deadline decides.
            assert_eq!(case.end, End::KeepAlive, "{}", case.name);
            continue;
        };
        let response =
            protocol::TimelineRecord { framing: exchange.framing(), ..exchange.response.clone() };
        let retry_after = response.head.as_ref().and_then(|head| head.retry_after.as_deref());
        assert_eq!(retry_after, case.expect.retry_after, "{}", case.name);
        let observed = Expected::observed(&response, Nanos::new(sent));
        let expected = Expected { retry_after: None, ..case.expect.clone() };
        assert_eq!(observed, expected, "{}", case.name);
    }
}
