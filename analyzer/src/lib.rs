//! goodput: replays a real trace through a gateway and turns it into goodput@SLO and a verdict.

pub mod stats;
