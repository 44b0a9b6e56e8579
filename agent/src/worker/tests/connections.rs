//! Counts of connections over a scripted source and scripted lists of sockets.

use super::*;
use crate::inflight::{ConnectionSource, GaugeRow};
use crate::sockdiag::{
    ConnectionSocket, Detail, DiagError, NamespaceId, NamespaceSockets, SocketTables,
};

const SECOND: u64 = 1_000_000_000;

/// Lists what the test says; `None` is a kernel that refuses.
#[derive(Clone, Default)]
struct Lists {
    now: Arc<Mutex<Option<Vec<NamespaceSockets>>>>,
    /// Sent to the source while the next dump is made.
    meanwhile: Arc<Mutex<Vec<(Script, SocketTransition)>>>,
}

impl SocketTables for Lists {
    fn set_endpoints(&mut self, _: &[std::net::SocketAddr]) {}

    fn dump(&mut self, _: Detail) -> Result<Vec<NamespaceSockets>, DiagError> {
        for (script, transition) in self.meanwhile.lock().unwrap().drain(..) {
            script.send(Step::Socket(transition));
        }
        self.now.lock().unwrap().clone().ok_or(DiagError::Interrupted)
    }
}

impl Lists {
    fn set(&self, clients: &[u16]) {
        let socket = |number: &u16| ConnectionSocket {
            local: endpoint(),
            remote: client(*number),
            state: 1,
            cookie: u64::from(*number),
            info: None,
        };
        let sockets = NamespaceSockets {
            namespace: NamespaceId(1),
            listening: [endpoint()].into(),
            connections: clients.iter().map(socket).collect(),
        };
        *self.now.lock().unwrap() = Some(vec![sockets]);
    }

    fn refuse(&self) {
        *self.now.lock().unwrap() = None;
    }
}

fn client(number: u16) -> std::net::SocketAddr {
    std::net::SocketAddr::new("10.0.0.2".parse().unwrap(), number)
}

fn change(stamp: u64, number: u16, old_state: u8, new_state: u8) -> SocketTransition {
    SocketTransition {
        stamp: Nanos::new(stamp),
        local: endpoint(),
        remote: client(number),
        old_state,
        new_state,
        at_endpoint: true,
    }
}

fn watching(lists: &Lists, meanwhile: impl FnOnce(&Script, &Lists)) -> Bench {
    let mut bench = Bench::new();
    meanwhile(&bench.script, lists);
    let watch = SocketWatch::new(Some(Box::new(lists.clone())), 300 * SECOND);
    bench.engine = bench.engine.watching(watch);
    bench
}

fn gauge(bench: &mut Bench) -> GaugeRow {
    bench.ask(Command::Gauges).endpoints[0].clone()
}

#[test]
fn connections_that_open_and_close_while_the_agent_starts_are_counted_once() {
    let lists = Lists::default();
    lists.set(&[1, 2, 4]);
    let mut bench = watching(&lists, |script, lists| {
        // Before the dump: client 2 connects, client 3 leaves. During it: 4 connects, 1 leaves.
        script.send(Step::Socket(change(10, 2, 3, 1)));
        script.send(Step::Socket(change(11, 3, 1, 7)));
        let during = [change(20, 4, 3, 1), change(21, 1, 1, 7)];
        lists.meanwhile.lock().unwrap().extend(during.map(|it| (script.clone(), it)));
    });
    let told = gauge(&mut bench);
    assert_eq!((told.connections, told.agreement.adopted), (Some(2), 2));
    assert_eq!(told.source, ConnectionSource::Tracepoint);
}

#[test]
fn reconciliation_follows_the_clock_and_survives_a_kernel_that_refuses() {
    let lists = Lists::default();
    lists.set(&[1]);
    let mut bench = watching(&lists, |_, _| {});
    bench.at(SECOND - 1);
    bench.poll();
    assert_eq!(gauge(&mut bench).agreement.reconciliations, 0);
    bench.at(SECOND);
    bench.poll();
    bench.poll();
    let told = gauge(&mut bench).agreement;
    assert_eq!((told.reconciliations, told.drift), (1, Some(0)));
    assert_eq!(told.reconciled_ns, Some(Nanos::new(SECOND)));
    lists.refuse();
    bench.at(2 * SECOND);
    bench.poll();
    assert_eq!(gauge(&mut bench).agreement.reconciliations, 1);
    lists.set(&[1]);
    bench.at(3 * SECOND);
    bench.poll();
    assert_eq!(gauge(&mut bench).agreement.reconciliations, 2);
}

#[test]
fn a_drift_that_is_set_right_makes_the_open_windows_incomplete() {
    let lists = Lists::default();
    lists.set(&[1]);
    let mut bench = watching(&lists, |_, _| {});
    let id = bench.open();
    lists.set(&[1, 2]);
    bench.at(SECOND);
    bench.poll();
    assert_eq!(gauge(&mut bench).agreement.drift, Some(1));
    let before = bench.close(&id);
    assert!(before.complete, "told, not yet set right: {before:?}");
    let id = bench.open();
    bench.at(2 * SECOND);
    bench.poll();
    let closing = bench.close(&id);
    assert_eq!(reasons(&closing), [Reason::ConnectionDrift]);
    assert_eq!(closing.counters.connection_corrections, 1);
    let id = bench.open();
    bench.at(3 * SECOND);
    bench.poll();
    assert!(bench.close(&id).complete);
    assert_eq!(gauge(&mut bench).connections, Some(2));
}

#[test]
fn a_transition_while_the_dump_is_made_is_no_drift() {
    let lists = Lists::default();
    lists.set(&[1]);
    let mut bench = watching(&lists, |_, _| {});
    for tick in 1..4 {
        let number = 1 + u16::try_from(tick).unwrap();
        let entered = change(tick * SECOND, number, 3, 1);
        lists.meanwhile.lock().unwrap().push((bench.script.clone(), entered));
        bench.at(tick * SECOND);
        bench.poll();
        assert_eq!(gauge(&mut bench).agreement.drift, Some(0), "at second {tick}");
        lists.set(&(1..=number).collect::<Vec<_>>());
    }
    assert_eq!(gauge(&mut bench).connections, Some(4));
}

#[test]
fn after_lost_records_the_series_ends_at_the_kernels_gauge() {
    let mut bench = Bench::new();
    let id = bench.open();
    bench.script.send(Step::Socket(change(10, 1, 3, 1)));
    bench.script.send(Step::LostSocket(change(20, 2, 3, 1)));
    bench.script.send(Step::LostSocket(change(30, 3, 3, 1)));
    bench.script.send(Step::Socket(change(40, 1, 1, 7)));
    bench.at(100_000_000);
    let told = gauge(&mut bench);
    assert_eq!((told.connections, told.agreement.resynchronisations), (Some(2), 1));
    bench.at(300_000_000);
    let closing = bench.close(&id);
    assert_eq!(reasons(&closing), [Reason::RingFull]);
    assert_eq!(closing.counters.connection_resynchronisations, 1);
    let rows = bench.ask(|reply| Command::Inflight(id.clone(), reply)).unwrap();
    let last = serde_json::to_value(rows.last().unwrap()).unwrap();
    assert_eq!((&last["connections_mean"], &last["connections_peak"]), (&2.0.into(), &2.into()));
    bench.script.send(Step::Socket(change(400_000_000, 2, 1, 7)));
    assert_eq!(gauge(&mut bench).connections, Some(1));
}

#[test]
fn connections_older_than_an_endpoints_watch_are_adopted_and_those_of_others_not_twice() {
    let lists = Lists::default();
    lists.set(&[1]);
    let mut bench = watching(&lists, |_, _| {});
    let other = Endpoint { address: "10.0.0.9:8000".parse().unwrap(), role: Role::Backend };
    let kept = Endpoint { address: endpoint(), role: Role::Backend };
    let follow = |bench: &mut Bench, endpoints: Vec<Endpoint>| {
        let change = Change { endpoints: Some(endpoints), ..Change::default() };
        bench.ask(|reply| Command::Reconfigure(change, reply)).unwrap();
    };
    follow(&mut bench, vec![kept, other]);
    let told = gauge(&mut bench);
    assert_eq!((told.connections, told.agreement.adopted), (Some(1), 1), "adopted once");

    follow(&mut bench, vec![other]);
    lists.set(&[1, 2, 3]);
    // While the list is made, client 3 leaves and client 4 comes.
    let during = [change(20, 3, 1, 7), change(21, 4, 3, 1)];
    lists.meanwhile.lock().unwrap().extend(during.map(|it| (bench.script.clone(), it)));
    follow(&mut bench, vec![kept, other]);
    let told = gauge(&mut bench);
    assert_eq!((told.connections, told.agreement.adopted), (Some(3), 3));
    assert_eq!(told.source, ConnectionSource::Tracepoint);
}

#[test]
fn a_windows_concentration_is_told_by_its_id() {
    let mut bench = Bench::new();
    let id = bench.open();
    bench.script.packets(&good(1, 1_000_000).packets);
    bench.at(200_000_000);
    bench.close(&id);
    let told = bench.ask(|reply| Command::Concentration(id.clone(), reply)).unwrap();
    assert_eq!((told.window_id.as_str(), told.roles.len()), (id.as_str(), 1));
    assert_eq!(told.roles[0].spread.ratio, Some(1.0));
    let unknown = bench.ask(|reply| Command::Concentration("w99".to_owned(), reply));
    assert_eq!(unknown.unwrap_err(), WindowError::Unknown);
}
