//! The lines on which the tables of a fleet file begin, for messages about them.

use super::file::FleetFile;
use crate::error::FleetError;

/// Tables as errors name them, and their lines; an engine's table comes after its backend's.
pub(super) struct Places(Vec<(String, usize)>);

impl Places {
    /// The tables of `file`, whose text is `text`.
    pub(super) fn new(file: &FleetFile, text: &str) -> Self {
        let line = |offset: usize| {
            let before = text.as_bytes().get(..offset).unwrap_or_default();
            1 + before.iter().filter(|byte| **byte == b'\n').count()
        };
        let mut places = Vec::new();
        let mut add = |place: String, offset: usize| places.push((place, line(offset)));
        if let Some(engine) = &file.engine {
            add("engine".to_owned(), engine.span().start);
        }
        for backend in &file.backend {
            let place = format!("backend {:?}", backend.get_ref().name);
            add(place.clone(), backend.span().start);
            if let Some(engine) = &backend.get_ref().engine {
                add(format!("{place}.engine"), engine.span().start);
            }
        }
        for gateway in &file.gateway {
            add(format!("gateway {:?}", gateway.get_ref().name), gateway.span().start);
        }
        Self(places)
    }

    /// The same error with the line of its table. Of two tables with one name it is the second's.
    pub(super) fn locate(&self, error: FleetError) -> FleetError {
        let FleetError::Invalid { place, .. } = &error else { return error };
        let of_it = |name: &str| place.strip_prefix(name).is_some_and(ends_a_name);
        match self.0.iter().rev().find(|(name, _)| of_it(name)) {
            Some((_, line)) => error.within(format_args!("line {line}")),
            None => error,
        }
    }
}

/// What follows a table's name in a place: nothing, or one of its keys.
fn ends_a_name(rest: &str) -> bool {
    rest.is_empty() || rest.starts_with('.')
}
