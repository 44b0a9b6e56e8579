//! Scripted responses with the right answer for each: what real servers and gateways send.
//!
//! A simulator serves each over real sockets; client and agent must both arrive at the expectation.
//! Ids such as `A1` group the cases: A first token, B event-stream grammar, C end of stream and
//! errors, D tokens per chunk and TPOT, F HTTP framing. Instants are milliseconds after the last
//! byte of the request.

mod endings;
mod expect;
mod first_token;
mod framing;
mod grammar;
mod script;
mod tokens;

pub use expect::{Expected, ExpectedFraming};
pub use script::{Case, End, Step};

/// Every case, in the order of its group.
#[must_use]
pub fn cases() -> Vec<Case> {
    [first_token::cases(), grammar::cases(), endings::cases(), tokens::cases(), framing::cases()]
        .concat()
}

/// The case called `name`.
#[must_use]
pub fn case(name: &str) -> Option<Case> {
    cases().into_iter().find(|case| case.name == name)
}
