//! A simulated inference fleet with real sockets: backends, gateway and faults.
