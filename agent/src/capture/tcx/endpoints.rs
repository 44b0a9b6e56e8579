//! Changing what is looked at while the programs run.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use agent_ebpf::endpoint::MAX_ENDPOINTS;
use aya::maps::HashMap;

use super::load::{ENDPOINT_KEY_LEN, key_bytes, map_error, map_mut};
use super::{TcxSource, config, load};
use crate::capture::CaptureError;

/// Connection slots by endpoint: those of `old` that stay keep theirs, a new one gets the lowest free.
fn assign(old: &BTreeMap<SocketAddr, u32>, wanted: &[SocketAddr]) -> BTreeMap<SocketAddr, u32> {
    let kept: BTreeMap<_, _> = wanted.iter().filter_map(|it| Some((*it, *old.get(it)?))).collect();
    let used: BTreeSet<u32> = kept.values().copied().collect();
    let mut free = (0..MAX_ENDPOINTS).filter(|slot| !used.contains(slot));
    let slot = |endpoint: &SocketAddr| {
        let slot = kept.get(endpoint).copied().or_else(|| free.next())?;
        Some((*endpoint, slot))
    };
    wanted.iter().filter_map(slot).collect()
}

impl TcxSource {
    /// Watches exactly `endpoints` from now on; connection gauges of those that stay go on. Maps that
    /// were opened stay writable after every capability was dropped.
    ///
    /// # Errors
    /// Names what is wrong with `endpoints`, or what the kernel refused.
    pub fn set_endpoints(&mut self, endpoints: &[SocketAddr]) -> Result<(), CaptureError> {
        let wanted = config::checked(endpoints)?;
        let slots = assign(&self.slots, &wanted);
        self.add(&slots)?;
        self.remove(&slots)?;
        self.slots = slots;
        self.endpoints = wanted;
        Ok(())
    }

    /// The slot is emptied before anything refers to it, and the address is there before the port
    /// that leads to it.
    fn add(&mut self, slots: &BTreeMap<SocketAddr, u32>) -> Result<(), CaptureError> {
        let fresh = || slots.iter().filter(|(endpoint, _)| !self.slots.contains_key(endpoint));
        for (_, slot) in fresh() {
            self.maps.connections.set(*slot, 0, 0).map_err(map_error("CONNECTIONS"))?;
        }
        let name = "ENDPOINTS";
        let mut keys: HashMap<_, [u8; ENDPOINT_KEY_LEN], u32> =
            map_mut(&mut self.bpf, name)?.try_into().map_err(map_error(name))?;
        for (endpoint, slot) in fresh() {
            keys.insert(key_bytes(*endpoint), *slot, 0).map_err(map_error(name))?;
        }
        let both = slots.keys().chain(self.slots.keys());
        load::set_ports(&mut self.bpf, both.map(SocketAddr::port))
    }

    fn remove(&mut self, slots: &BTreeMap<SocketAddr, u32>) -> Result<(), CaptureError> {
        load::set_ports(&mut self.bpf, slots.keys().map(SocketAddr::port))?;
        let name = "ENDPOINTS";
        let mut keys: HashMap<_, [u8; ENDPOINT_KEY_LEN], u32> =
            map_mut(&mut self.bpf, name)?.try_into().map_err(map_error(name))?;
        for endpoint in self.slots.keys().filter(|endpoint| !slots.contains_key(endpoint)) {
            keys.remove(&key_bytes(*endpoint)).map_err(map_error(name))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(port: u16) -> SocketAddr {
        SocketAddr::from(([10, 0, 0, 1], port))
    }

    #[test]
    fn endpoints_that_stay_keep_their_slots_and_new_ones_take_what_is_free() {
        let old = BTreeMap::from([(at(1), 0), (at(2), 1), (at(3), 2)]);
        let new = assign(&old, &[at(1), at(3), at(4), at(5)]);
        assert_eq!(new, BTreeMap::from([(at(1), 0), (at(3), 2), (at(4), 1), (at(5), 3)]));
    }
}
