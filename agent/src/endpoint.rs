//! Endpoints and the roles they play.

use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::capture::tcx::canonical;

/// What an endpoint is to the fleet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// A virtual address of a gateway.
    Vip,
    /// A backend.
    Backend,
    /// A backend that computes prompts.
    Prefill,
    /// A backend that generates tokens.
    Decode,
}

/// Which leg of a request a connection carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Leg {
    /// From the client to a VIP.
    Client,
    /// From the gateway to a backend.
    Backend,
}

impl Role {
    /// Every role.
    pub const ALL: [Self; 4] = [Self::Vip, Self::Backend, Self::Prefill, Self::Decode];

    /// The leg that ends at an endpoint of this role.
    #[must_use]
    pub const fn leg(self) -> Leg {
        match self {
            Self::Vip => Leg::Client,
            Self::Backend | Self::Prefill | Self::Decode => Leg::Backend,
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Vip => "vip",
            Self::Backend => "backend",
            Self::Prefill => "prefill",
            Self::Decode => "decode",
        })
    }
}

/// A server address to watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Endpoint {
    /// Its address.
    #[serde(deserialize_with = "address")]
    pub address: SocketAddr,
    /// Its role.
    pub role: Role,
}

/// Addresses in the form that records carry them.
fn address<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<SocketAddr, D::Error> {
    let text = String::deserialize(deserializer)?;
    parse_address(&text).map_err(serde::de::Error::custom)
}

fn parse_address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map(canonical).map_err(|_| {
        format!("`{text}` is no address with a port: write 10.0.0.1:8000 or [2001:db8::1]:8000")
    })
}

impl FromStr for Endpoint {
    type Err = String;

    /// `ROLE=ADDRESS:PORT`.
    fn from_str(text: &str) -> Result<Self, String> {
        let form =
            || format!("`{text}` is no endpoint: write ROLE=ADDRESS:PORT, as in vip=10.0.0.1:80");
        let (role, address) = text.split_once('=').ok_or_else(form)?;
        let role = match role {
            "vip" => Role::Vip,
            "backend" => Role::Backend,
            "prefill" => Role::Prefill,
            "decode" => Role::Decode,
            _ => return Err(format!("`{role}` is no role: write vip, backend, prefill or decode")),
        };
        Ok(Self { address: parse_address(address)?, role })
    }
}
