//! Whatever happens in whatever order: counts end up at the number of sockets.

use std::collections::BTreeSet;

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

/// Sockets as the kernel has them.
#[derive(Default)]
struct Kernel {
    open: BTreeSet<u16>,
    gauge: i64,
    lost: u64,
    stamp: u64,
}

#[derive(Clone, Copy, Debug)]
enum Event {
    /// The client opens its connection, or closes it when it is open.
    Toggle {
        client: u16,
        lost: bool,
    },
    Reconcile,
    Resynchronise,
}

impl Kernel {
    fn toggle(&mut self, client: u16) -> SocketTransition {
        self.stamp += 10;
        let entered = self.open.insert(client);
        if !entered {
            self.open.remove(&client);
        }
        self.gauge += if entered { 1 } else { -1 };
        let (old, new) = if entered { (3, 1) } else { (1, 7) };
        change(self.stamp, client, old, new)
    }

    fn dump(&self) -> NamespaceSockets {
        listed(1, self.open.iter().copied())
    }

    fn count(&self) -> Option<u64> {
        Some(self.open.len() as u64)
    }

    fn reconcile(&mut self, inflight: &mut Inflight) {
        self.stamp += 10;
        let before = inflight.marks();
        inflight.reconcile(&before, &[self.dump()], self.lost, ns(self.stamp));
    }

    fn resynchronise(&mut self, inflight: &mut Inflight) {
        self.stamp += 10;
        inflight.resynchronise(&[(endpoint().address, self.gauge)], ns(self.stamp));
    }
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        8 => (0..12_u16, prop::bool::weighted(0.2))
            .prop_map(|(client, lost)| Event::Toggle { client, lost }),
        1 => Just(Event::Reconcile),
        1 => Just(Event::Resynchronise),
    ]
}

/// An agent that starts while the clients of `older` are connected.
fn started(older: &BTreeSet<u16>) -> (Kernel, Inflight) {
    let kernel = Kernel { open: older.clone(), ..Kernel::default() };
    let mut inflight = inflight();
    inflight.adopt(&[kernel.dump()]);
    (kernel, inflight)
}

proptest! {
    #[test]
    fn lost_records_are_made_up_for_by_the_kernels_gauge(
        older in prop::collection::btree_set(0..12_u16, 0..6),
        events in vec(event(), 0..120),
    ) {
        let (mut kernel, mut inflight) = started(&older);
        for event in events {
            match event {
                Event::Toggle { client, lost } => {
                    let transition = kernel.toggle(client);
                    kernel.lost += u64::from(lost);
                    if !lost {
                        inflight.socket(&transition);
                    }
                    if kernel.lost == 0 {
                        prop_assert_eq!(inflight.gauges()[0].connections, kernel.count());
                    }
                }
                Event::Reconcile => kernel.reconcile(&mut inflight),
                Event::Resynchronise => kernel.resynchronise(&mut inflight),
            }
            inflight.settle(ns(kernel.stamp));
        }
        kernel.resynchronise(&mut inflight);
        kernel.reconcile(&mut inflight);
        kernel.reconcile(&mut inflight);
        prop_assert_eq!(inflight.gauges()[0].connections, kernel.count());
    }

    #[test]
    fn without_a_gauge_two_quiet_reconciliations_are_enough(
        older in prop::collection::btree_set(0..12_u16, 0..6),
        toggles in vec((0..12_u16, any::<bool>()), 0..60),
    ) {
        let (mut kernel, mut inflight) = started(&older);
        for (client, lost) in toggles {
            let transition = kernel.toggle(client);
            kernel.lost += u64::from(lost);
            if !lost {
                inflight.socket(&transition);
            }
        }
        kernel.reconcile(&mut inflight);
        kernel.reconcile(&mut inflight);
        prop_assert_eq!(inflight.gauges()[0].connections, kernel.count());
        let corrections = inflight.corrections();
        kernel.reconcile(&mut inflight);
        prop_assert_eq!(inflight.gauges()[0].agreement.drift, Some(0));
        prop_assert_eq!(inflight.corrections(), corrections);
    }

    #[test]
    fn adoption_is_exact_wherever_the_dump_looks_at_each_socket(
        before in vec(0..6_u16, 0..12),
        during in vec(0..6_u16, 0..24),
        looks in vec(0..25_usize, 6),
        after in vec(0..6_u16, 0..12),
    ) {
        let mut kernel = Kernel::default();
        for client in before {
            kernel.toggle(client);
        }
        let mut inflight = inflight();
        let mut seen = BTreeSet::new();
        // The dump looks at each client's socket before one of the transitions, or after them all.
        for moment in 0..=during.len() {
            let now = |client: &usize| looks[*client].min(during.len()) == moment;
            let clients = (0..looks.len()).filter(now).filter_map(|it| u16::try_from(it).ok());
            seen.extend(clients.filter(|client| kernel.open.contains(client)));
            if let Some(client) = during.get(moment) {
                inflight.socket(&kernel.toggle(*client));
            }
        }
        inflight.adopt(&[listed(1, seen)]);
        prop_assert_eq!(inflight.gauges()[0].connections, kernel.count());
        for client in after {
            inflight.socket(&kernel.toggle(client));
        }
        prop_assert_eq!(inflight.gauges()[0].connections, kernel.count());
    }
}
