//! The kernel programs of goodput-agent. Built by `cargo xtask ebpf` only.
#![no_std]
#![no_main]
#![feature(asm_experimental_arch)]

mod kernel;

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}

/// Some helpers are only for programs under a GPL-compatible licence.
#[unsafe(link_section = "license")]
#[unsafe(no_mangle)]
static LICENSE: [u8; 13] = *b"Dual MIT/GPL\0";
