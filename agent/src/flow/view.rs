//! What of a stream each interface has shown.
//!
//! On its way through a host a segment may pass several watched interfaces, and be merged or cut in
//! between (GRO, GSO). So segments of two interfaces are never compared with each other: what an
//! interface shows a second time was sent again, what another one has shown is the same bytes on
//! their way.

use std::ops::Range;

/// Interfaces that are told apart on one stream; a packet's path crosses fewer.
const MOST: usize = 16;

/// What a segment's range was, compared with those before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sight {
    /// Some of it had been seen on the same interface, and no other one has shown this repetition yet.
    pub(super) repeated: bool,
    /// Another interface has shown some of it, or this repetition.
    pub(super) second_view: bool,
    /// Bytes that the stream is longer for it.
    pub(super) fresh: u64,
}

/// What one interface has shown.
#[derive(Clone, Debug, Default)]
struct View {
    ifindex: u32,
    /// End of the furthest range.
    reach: u64,
    /// The last part before `reach` that it has not shown: it was overtaken, or lost.
    hole: Option<Range<u64>>,
    /// Segments that repeated something.
    repeats: u64,
}

impl View {
    fn has_shown(&self, range: &Range<u64>) -> bool {
        let in_hole = |hole: &Range<u64>| hole.start <= range.start && range.end <= hole.end;
        // Bytes from before the stream's known beginning leave nothing of the range.
        range.start < self.reach && !range.is_empty() && !self.hole.as_ref().is_some_and(in_hole)
    }

    fn show(&mut self, range: &Range<u64>) {
        if range.start > self.reach {
            self.hole = Some(self.reach..range.start);
        } else if let Some(hole) = &mut self.hole
            && range.start < hole.end
        {
            // What comes late comes in order: the hole closes from its start.
            hole.start = hole.start.max(range.end);
        }
        self.hole = self.hole.take().filter(|hole| !hole.is_empty());
        self.reach = self.reach.max(range.end);
    }
}

/// What every interface has shown of one stream.
#[derive(Debug, Default)]
pub(super) struct Views {
    views: Vec<View>,
}

impl Views {
    /// Takes note of `range` on interface `ifindex`.
    pub(super) fn see(&mut self, ifindex: u32, range: Range<u64>) -> Sight {
        let reach = self.views.iter().map(|view| view.reach).max().unwrap_or(0);
        let shown = |view: &View| view.has_shown(&range);
        let known = self.views.iter().any(shown);
        let most = self.views.iter().map(|view| view.repeats).max().unwrap_or(0);
        let mut repeated = false;
        if let Some(view) = self.views.iter_mut().find(|view| view.ifindex == ifindex) {
            view.repeats += u64::from(view.has_shown(&range));
            repeated = view.repeats > most;
            view.show(&range);
        } else if self.views.len() < MOST {
            // Nothing before its first range was missed by an interface that joins later.
            self.views.reserve_exact(1);
            self.views.push(View { ifindex, reach: range.end, hole: None, repeats: 0 });
        }
        let fresh = range.end.saturating_sub(reach);
        Sight { repeated, second_view: known && !repeated, fresh }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPEATED: (bool, bool) = (true, false);
    const SECOND: (bool, bool) = (false, true);
    const NEW: (bool, bool) = (false, false);

    /// Interface, range, whether it is repeated or a second view, and its fresh bytes.
    type Expected = (u32, Range<u64>, (bool, bool), u64);

    fn seen(ranges: &[Expected]) {
        let mut views = Views::default();
        for (ifindex, range, kind, fresh) in ranges {
            let sight = views.see(*ifindex, range.clone());
            assert_eq!((sight.repeated, sight.second_view), *kind, "{ifindex} {range:?}");
            assert_eq!(sight.fresh, *fresh, "{ifindex} {range:?}");
        }
    }

    #[test]
    fn segments_that_were_merged_or_cut_between_two_interfaces_repeat_nothing() {
        seen(&[
            (1, 0..10, NEW, 10),
            (1, 10..20, NEW, 10),
            (2, 0..30, SECOND, 10),
            (1, 20..30, SECOND, 0),
            (1, 30..60, NEW, 30),
            (2, 30..40, SECOND, 0),
            (2, 40..70, SECOND, 10),
            (1, 60..70, SECOND, 0),
        ]);
    }

    #[test]
    fn what_one_interface_shows_again_is_repeated_once() {
        seen(&[
            (1, 0..10, NEW, 10),
            (2, 0..10, SECOND, 0),
            (1, 0..10, REPEATED, 0),
            (2, 0..10, SECOND, 0),
            (1, 5..15, REPEATED, 5),
        ]);
    }

    #[test]
    fn what_was_overtaken_is_not_repeated() {
        seen(&[
            (1, 0..10, NEW, 10),
            (1, 30..40, NEW, 30),
            (1, 10..20, NEW, 0),
            (1, 20..30, NEW, 0),
            (1, 20..30, REPEATED, 0),
            (2, 30..40, SECOND, 0),
        ]);
    }

    #[test]
    fn the_number_of_interfaces_is_bounded() {
        let mut views = Views::default();
        for ifindex in 0..1000 {
            views.see(ifindex, 0..10);
        }
        assert_eq!(views.views.len(), MOST);
    }
}
