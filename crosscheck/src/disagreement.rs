//! One figure that came out differently.

use serde_json::{Value, json};

/// What was compared, where, and both figures.
#[derive(Clone, Debug, PartialEq)]
pub struct Disagreement {
    /// Which rule: a stable word.
    pub rule: &'static str,
    /// Where: `arm r40 rep3`, `arm r40`, `arm` or `campaign`.
    pub place: String,
    /// What the run directory says.
    pub said: String,
    /// What comes out here.
    pub found: String,
}

impl Disagreement {
    /// A disagreement at `place`.
    #[must_use]
    pub fn new(
        rule: &'static str,
        place: impl Into<String>,
        said: &impl ToString,
        found: &impl ToString,
    ) -> Self {
        let (said, found) = (said.to_string(), found.to_string());
        Self { rule, place: place.into(), said, found }
    }

    /// As it is written.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let Self { rule, place, said, found } = self;
        json!({ "rule": rule, "place": place, "said": said, "found": found })
    }
}
