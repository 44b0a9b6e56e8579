//! Maps and globals. User space finds them by these names.

use agent_ebpf::{
    counters::{InterfaceCounters, PacketCounters, SocketCounters},
    endpoint::{
        EndpointKey, FlowKey, INTERFACE_TABLE, MAX_BUDGET_FLOWS, MAX_ENDPOINTS, Options, PortSet,
        RequestBudget,
    },
};
use aya_ebpf::{
    Global,
    macros::map,
    maps::{Array, HashMap, LruHashMap, PerCpuArray, RingBuf},
};

use super::emit::Scratch;

/// Not 0: say in the kernel log ring what was decided. A frozen constant, so that the verifier
/// removes the code when it is off.
#[unsafe(no_mangle)]
pub(super) static KERNEL_LOG: Global<u8> = Global::new(0);

/// Bytes waiting in the ring at which the reader is woken before its timer.
#[unsafe(no_mangle)]
pub(super) static WAKE_BYTES: Global<u32> = Global::new(2 * 1024 * 1024);
/// Odd number that spreads the watched interfaces over [`INTERFACES`] without a collision.
#[unsafe(no_mangle)]
pub(super) static INTERFACE_FACTOR: Global<u32> = Global::new(1);

/// Every record. User space sets the size before loading.
#[map]
pub(super) static RECORDS: RingBuf = RingBuf::with_byte_size(16 * 1024 * 1024, 0);
/// Ports of endpoints: one read turns a foreign packet away, before any hash.
#[map]
pub(super) static PORTS: Array<PortSet> = Array::with_max_entries(1, 0);
/// What user space may change while the programs run.
#[map]
pub(super) static OPTIONS: Array<Options> = Array::with_max_entries(1, 0);
/// Endpoint to its slot in `CONNECTIONS`.
#[map]
pub(super) static ENDPOINTS: HashMap<EndpointKey, u32> =
    HashMap::with_max_entries(MAX_ENDPOINTS, 0);
/// Server-side connections per endpoint slot: those entered minus those left.
#[map]
pub(super) static CONNECTIONS: Array<i64> = Array::with_max_entries(MAX_ENDPOINTS, 0);
/// Request bytes copied since the endpoint last answered.
#[map]
pub(super) static BUDGETS: LruHashMap<FlowKey, RequestBudget> =
    LruHashMap::with_max_entries(MAX_BUDGET_FLOWS, 0);
/// Counters of the packet programs.
#[map]
pub(super) static PACKET_COUNTERS: PerCpuArray<PacketCounters> =
    PerCpuArray::with_max_entries(1, 0);
/// Counters of the tracepoint program.
#[map]
pub(super) static SOCKET_COUNTERS: PerCpuArray<SocketCounters> =
    PerCpuArray::with_max_entries(1, 0);
/// All packets of each attached interface, foreign ones included; see
/// [`agent_ebpf::endpoint::interface_slot`].
#[map]
pub(super) static INTERFACES: PerCpuArray<InterfaceCounters> =
    PerCpuArray::with_max_entries(INTERFACE_TABLE, 0);
/// Where a record is put together; too large for the 512 bytes of stack. The packet programs run
/// with bottom halves off, so that two of them never share a CPU's entry.
#[map]
pub(super) static SCRATCH: PerCpuArray<Scratch> = PerCpuArray::with_max_entries(1, 0);
