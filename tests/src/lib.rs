//! End-to-end tests: real sockets, real namespaces, the real kernel programs.
