//! Legs of scripted requests.

use protocol::Nanos;
use protocol::receipt::Receipt;
use serde_json::{Value, json};

use super::*;
use crate::endpoint::{Endpoint, Leg, Role};
use crate::observation::Outcome;

const MS: u64 = 1_000_000;
const VIP: &str = "10.0.0.10:8000";
const P: &str = "10.0.1.1:8000";
const P2: &str = "10.0.1.2:8000";
const D: &str = "10.0.2.1:8000";

fn leg(number: u8, role: Role, endpoint: &str, at: u64, ttft: u64) -> LegRow {
    let stamp = |ms: u64| Some(Nanos::new(ms * MS));
    LegRow {
        trace_id: Some(protocol::TraceId::new([number; 16]).unwrap()),
        endpoint: endpoint.parse().unwrap(),
        leg: role.leg(),
        role,
        peer: "10.0.0.2:40000".parse().unwrap(),
        connection: at,
        request_index: 0,
        request_first_ns: stamp(at),
        request_end_ns: stamp(at),
        request_resent_ns: None,
        first_byte_ns: stamp(at + ttft),
        first_token_ns: stamp(at + ttft),
        framing_end_ns: stamp(at + ttft),
        status: Some(200),
        outcome: Outcome::Ok,
        request_retransmits: 0,
        response_retransmits: 0,
        handshake_rtt_ns: Some(0),
        client_rtt_upper_bound_ns: Some(0),
        receipt_prefill: None,
        receipt_decode: None,
    }
}

/// Client 0..100 ms; prefill 10..40; decode 45..90.
fn disaggregated(number: u8) -> [LegRow; 3] {
    [
        leg(number, Role::Vip, VIP, 0, 100),
        leg(number, Role::Prefill, P, 10, 30),
        leg(number, Role::Decode, D, 45, 45),
    ]
}

fn with_receipt(mut row: LegRow, prefill: &str, decode: &str) -> LegRow {
    let address = |text: &str| Some(text.parse().unwrap());
    (row.receipt_prefill, row.receipt_decode) = (address(prefill), address(decode));
    row
}

fn endpoints() -> Vec<Endpoint> {
    [(VIP, Role::Vip), (P, Role::Prefill), (P2, Role::Prefill), (D, Role::Decode)]
        .map(|(address, role)| Endpoint { address: address.parse().unwrap(), role })
        .to_vec()
}

fn scope(endpoints: &[Endpoint]) -> Scope<'_> {
    Scope { endpoints, complete: true, slow_ns: 50_000_000 }
}

fn told(legs: &[LegRow]) -> (Vec<Value>, Value) {
    let (endpoints, pairing) = (endpoints(), pair(legs.to_vec()));
    let rows = rows(&pairing, &scope(&endpoints));
    let rows = rows.iter().map(|row| serde_json::to_value(row).unwrap()).collect();
    let delivery = delivery("w1".to_owned(), &pairing, &scope(&endpoints));
    (rows, serde_json::to_value(delivery).unwrap())
}

fn split(legs: &[LegRow]) -> Split {
    Split::of(&pair(legs.to_vec()).pairs[0]).unwrap()
}

#[test]
fn client_prefill_and_decode_legs_are_paired_whatever_their_order() {
    let mut legs = disaggregated(1).to_vec();
    let expected = told(&legs);
    legs.rotate_left(1);
    assert_eq!(told(&legs), expected);
    legs.reverse();
    assert_eq!(told(&legs), expected);
    let row = &expected.0[0];
    assert_eq!((&row["prefill"], &row["decode"]), (&json!(P), &json!(D)));
    assert_eq!((&row["ttft_ns"], &row["backend_ttft_ns"]), (&json!(100 * MS), &json!(45 * MS)));
    assert_eq!((&row["attempts"], &row["retries"]), (&json!(2), &json!(0)));
    assert_eq!(expected.1["pairs"], 1);
    assert_eq!(expected.1["disaggregated"], 1);
    assert_eq!(expected.1["backends"][P], json!({"prefill": 1, "decode": 0, "unanswered": 0}));
}

#[test]
fn the_parts_add_up_to_the_client_legs_ttft() {
    let split = split(&disaggregated(1));
    let ms = |ns: i64| ns / 1_000_000;
    // 10 before the prefill, 5 to the decode, 10 back to the client.
    assert_eq!((ms(split.gateway_ns), ms(split.backend_ns)), (25, 75));
    assert_eq!((split.network_between_ns, split.retries_ns), (0, 0));
    assert_eq!(ms(split.total_ns()), 100);
    assert_eq!(split.cause, Cause::Backend);
}

#[test]
fn each_delay_is_put_down_to_its_own_cause() {
    let [client, backend] = [leg(1, Role::Vip, VIP, 0, 300), leg(1, Role::Backend, D, 10, 280)];
    let cause = |client: &LegRow, backend: &LegRow| split(&[client.clone(), backend.clone()]).cause;
    assert_eq!(cause(&client, &backend), Cause::Backend);
    let quick = leg(1, Role::Backend, D, 200, 20);
    assert_eq!(cause(&client, &quick), Cause::Gateway);
    let resent =
        LegRow { request_resent_ns: Some(Nanos::new(210 * MS)), request_retransmits: 1, ..backend };
    assert_eq!(cause(&client, &resent), Cause::NetworkBetween);
    let far = LegRow { handshake_rtt_ns: Some(250 * MS), ..backend };
    assert_eq!(cause(&client, &far), Cause::NetworkBetween);
    let slow_upload = LegRow {
        request_first_ns: Some(Nanos::new(0)),
        request_end_ns: Some(Nanos::new(400 * MS)),
        first_token_ns: Some(Nanos::new(700 * MS)),
        ..client
    };
    let after = leg(1, Role::Backend, D, 410, 280);
    assert_eq!(cause(&slow_upload, &after), Cause::ClientNetwork);
    let failed = LegRow { status: Some(503), ..leg(1, Role::Backend, P, 10, 5) };
    let retried = split(&[client, failed, leg(1, Role::Backend, D, 250, 40)]);
    assert_eq!((retried.cause, retried.retries_ns), (Cause::Retries, 240_000_000));
    assert_eq!(retried.total_ns(), 300_000_000);
}

#[test]
fn a_retry_keeps_every_attempt_and_the_answer_comes_from_the_last() {
    let failed = LegRow { status: None, ..leg(1, Role::Prefill, P2, 5, 1) };
    let [client, prefill, decode] = disaggregated(1);
    let client = with_receipt(client, P, D);
    let (rows, delivery) = told(&[client, failed, prefill, decode]);
    assert_eq!((&rows[0]["attempts"], &rows[0]["retries"]), (&json!(3), &json!(1)));
    assert_eq!(rows[0]["prefill"], P);
    assert_eq!(rows[0]["receipt"]["verdict"], "agree");
    assert_eq!(
        (&delivery["retried"], &delivery["backends"][P2]["unanswered"]),
        (&json!(1), &json!(1))
    );
}

#[test]
fn legs_without_counterpart_are_counted_and_named() {
    let nameless = LegRow { trace_id: None, ..leg(9, Role::Backend, D, 1, 1) };
    let alone = leg(1, Role::Vip, VIP, 2, 5);
    let orphan = leg(2, Role::Backend, D, 3, 5);
    let twice = [leg(3, Role::Vip, VIP, 4, 5), leg(3, Role::Vip, VIP, 5, 5)];
    let legs = [vec![nameless, alone, orphan, leg(3, Role::Backend, D, 6, 1)], twice.to_vec()];
    let (rows, delivery) = told(&legs.concat());
    assert_eq!(delivery["pairs"], 0);
    assert_eq!(
        delivery["unmatched"],
        json!({
            "client": {"no_backend_leg": 1, "repeated_trace_id": 2},
            "backend": {"no_client_leg": 1, "no_trace_id": 1, "repeated_trace_id": 1}
        })
    );
    assert_eq!(rows.len(), 6);
    assert_eq!(
        (&rows[0]["unmatched"], &rows[0]["leg"]),
        (&json!("no_trace_id"), &json!("backend"))
    );
}

#[test]
fn receipts_are_compared_with_what_was_seen() {
    let honest = |number| {
        let [client, prefill, decode] = disaggregated(number);
        vec![with_receipt(client, P, D), prefill, decode]
    };
    let lie = |number| {
        let [client, prefill, decode] = disaggregated(number);
        vec![with_receipt(client, P2, D), prefill, decode]
    };
    let unsent = {
        let [client, _, decode] = disaggregated(4);
        vec![with_receipt(client, P, D), decode]
    };
    let legs = [honest(1), lie(2), disaggregated(3).to_vec(), unsent].concat();
    let (rows, delivery) = told(&legs);
    assert_eq!(
        delivery["receipts"],
        json!({"agree": 1, "disagree": 2, "absent": 1, "not_observable": 0})
    );
    assert_eq!(delivery["disagreements"][0]["reasons"], json!(["prefill_elsewhere"]));
    assert_eq!(delivery["disagreements"][0]["prefill"], P);
    assert_eq!(delivery["disagreements"][1]["reasons"], json!(["prefill_not_sent"]));
    let verdicts: Vec<_> = rows.iter().map(|row| row["receipt"]["verdict"].clone()).collect();
    assert_eq!(verdicts, ["agree", "disagree", "absent", "disagree"]);
}

#[test]
fn a_missing_leg_contradicts_nothing_where_something_may_be_lost() {
    let [client, _, decode] = disaggregated(1);
    let legs = [with_receipt(client, P, D), decode];
    let (endpoints, pairing) = (endpoints(), pair(legs));
    let lossy = Scope { complete: false, ..scope(&endpoints) };
    let told = serde_json::to_value(delivery("w1".to_owned(), &pairing, &lossy)).unwrap();
    assert_eq!(
        (&told["receipts"]["not_observable"], &told["complete"]),
        (&json!(1), &json!(false))
    );
}

#[test]
fn rows_are_read_as_they_are_written() {
    use crate::testing::{HEAD, LAST_CHUNK, Talk, done, post};
    let mut talk = Talk::open();
    let receipt = Receipt { prefill: P.parse().unwrap(), decode: D.parse().unwrap() };
    let id = format!("chatcmpl-{}", receipt.request_id("00"));
    let event = format!(
        "data: {{\"id\":\"{id}\",\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"x\"}}}}]}}\n\n"
    );
    let chunk = format!("{:x}\r\n{event}\r\n", event.len());
    let answer = [HEAD, chunk.repeat(2).as_bytes(), &done(), LAST_CHUNK].concat();
    talk.request(&post(7, "secret prompt")).response(&answer);
    talk.client_fin().endpoint_fin();
    let mut table = crate::flow::FlowTable::new([crate::testing::endpoint()], Default::default());
    talk.packets.iter().for_each(|packet| table.take(&packet.segment()));
    table.flush();
    let finished = table.take_events().into_iter().find_map(|event| match event {
        crate::flow::FlowEvent::Finished(exchange) => Some(*exchange),
        _ => None,
    });
    let observation = crate::observation::Observation {
        role: Role::Vip,
        interface: "lo".to_owned(),
        exchange: finished.unwrap(),
    };
    let written = serde_json::to_string(&crate::observation::KernelRow::new(&observation)).unwrap();
    let read: LegRow = serde_json::from_str(&written).unwrap();
    assert_eq!(read, LegRow::new(&observation));
    assert_eq!((read.outcome, read.receipt()), (Outcome::Ok, Some(receipt)));
    assert!(written.contains("\"receipt_from\":\"response_id\""), "{written}");
}

fn tally(legs: &[(u64, LegRow)], until: u64) -> LegCounts {
    let mut tally = Tally::new(&endpoints());
    for (at, row) in legs {
        tally.settle(Nanos::new(at * MS));
        tally.add(row.clone(), Nanos::new(at * MS));
    }
    tally.settle(Nanos::new(until * MS));
    tally.counts().clone()
}

#[test]
fn the_running_agent_counts_each_pair_once_its_legs_have_ended() {
    let [client, prefill, decode] = disaggregated(1);
    let client = with_receipt(client, P, D);
    let legs = [(40, prefill), (100, client), (101, decode)];
    assert_eq!(tally(&legs, 1000).paired, 0);
    let counts = tally(&legs, 1100);
    assert_eq!((counts.paired, counts.receipts["agree"]), (1, 1));
    assert_eq!(counts.unmatched.values().sum::<u64>(), 0);
    assert_eq!(tally(&legs, 2_000_000), counts);
}

#[test]
fn the_running_agent_names_legs_that_stay_alone() {
    let alone = [(1, leg(1, Role::Vip, VIP, 0, 1)), (2, leg(2, Role::Decode, D, 0, 1))];
    let counts = tally(&alone, 1_001);
    assert_eq!(counts.unmatched[&("client", "no_backend_leg")], 1);
    assert_eq!(counts.unmatched[&("backend", "no_client_leg")], 0);
    assert_eq!(tally(&alone, 900_002).unmatched[&("backend", "no_client_leg")], 1);
    // The same id again is another request.
    let again = [(1, leg(1, Role::Vip, VIP, 0, 1)), (5_000, leg(1, Role::Vip, VIP, 0, 1))];
    assert_eq!(tally(&again, 6_000).unmatched[&("client", "no_backend_leg")], 2);
}

#[test]
fn what_waits_is_bounded() {
    let mut tally = Tally::new(&endpoints());
    for number in 0..40_000_u32 {
        let mut row = leg(1, Role::Decode, D, 0, 1);
        let mut id = [1_u8; 16];
        id[..4].copy_from_slice(&number.to_be_bytes());
        row.trace_id = Some(protocol::TraceId::new(id).unwrap());
        tally.add(row, Nanos::new(u64::from(number)));
    }
    assert_eq!(tally.waiting(), 16_384);
    let evicted = tally.counts().unmatched[&("backend", "evicted")];
    assert_eq!(evicted, 40_000 - 16_384);
    let mut backends_only = Tally::new(&endpoints()[1..]);
    backends_only.add(leg(1, Role::Decode, D, 0, 1), Nanos::new(0));
    assert_eq!(backends_only.waiting(), 0);
    assert_eq!(Leg::Backend, Role::Decode.leg());
}
