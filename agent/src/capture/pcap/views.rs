//! Places that packets were seen at: the same bytes seen at another place are a second view, at the
//! same place a retransmission.

use std::collections::HashMap;

use super::link::Hop;

/// Places told apart; a hostile file can't make more. Those beyond share one number.
const MAX_VIEWS: usize = 4096;

/// An interface of the file, and what a cooked header adds.
type Place = (u32, Option<Hop>);

/// Numbers for places, from 1 in the order of their first packet.
#[derive(Debug, Default)]
pub(super) struct Views {
    numbers: HashMap<Place, u32>,
    /// The packet before usually came from the same place.
    last: Option<(Place, u32)>,
    names: Vec<String>,
}

impl Views {
    /// The number of a place; `name` is that of its interface in the file.
    pub(super) fn number(
        &mut self,
        interface: u32,
        hop: Option<Hop>,
        name: impl FnOnce() -> String,
    ) -> u32 {
        let key = (interface, hop);
        if let Some((_, number)) = self.last.filter(|(last, _)| *last == key) {
            return number;
        }
        let number = match self.numbers.get(&key) {
            Some(number) => *number,
            None => self.add(key, name),
        };
        self.last = Some((key, number));
        number
    }

    fn add(&mut self, key: Place, name: impl FnOnce() -> String) -> u32 {
        let number = u32::try_from(self.names.len() + 1).unwrap_or(u32::MAX);
        if self.names.len() < MAX_VIEWS {
            self.names.push(full_name(name(), key.1));
            self.numbers.insert(key, number);
        }
        number
    }

    /// Its name, for people.
    pub(super) fn name(&self, number: u32) -> Option<&str> {
        let index = usize::try_from(number.checked_sub(1)?).ok()?;
        self.names.get(index).map(String::as_str)
    }
}

/// Cooked captures name all interfaces alike: the index tells them apart.
fn full_name(interface: String, hop: Option<Hop>) -> String {
    match hop {
        Some(Hop { ifindex, .. }) if ifindex != 0 => format!("if{ifindex}"),
        _ => interface,
    }
}
