//! The terminal view: one tick of an agent's `/metrics`, drawn. Every value on the screen is one of that
//! text, or follows from it and the tick before.

mod model;
mod view;

pub use model::{Model, Row};
pub use view::{Sort, View, draw};
