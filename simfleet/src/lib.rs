//! A simulated inference fleet with real sockets: backends, gateway and faults.
//!
//! Start one with [`Fleet::start`]; docs/simulator.md describes the model and the fleet file.
#![forbid(unsafe_code)]

mod backend;
pub mod blocks;
pub mod cache;
mod clock;
mod config;
mod engine;
mod error;
mod fault;
mod fleet;
mod gateway;
mod http;
pub mod model;
mod openai;
pub mod policy;
mod request_log;
mod script;

pub use clock::monotonic_now;
pub use config::{
    Algorithm, BackendConfig, EndpointRef, EngineConfig, FleetConfig, GatewayConfig,
    GatewayKeepAlive, HashKey, KeepAliveLimits, PolicyConfig, RoleChunk, Upstream,
};
pub use error::FleetError;
pub use fault::{
    BackendFault, FAULT_CODES, FAULT_MODEL_PREFIX, GatewayFault, UnknownFault, fault_list,
};
pub use fleet::{BackendInfo, Fleet, FleetHandle, GatewayInfo, Ready};
pub use request_log::{Outcome, RequestRecord};
