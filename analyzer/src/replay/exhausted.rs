//! Telling the client's own limits from the server's answers.

use std::io;

/// What this host ran out of, when `error` says so: then no server has been asked, and the request was
/// never dispatched (connect(2), socket(2)).
pub(super) fn exhausted(error: &io::Error) -> Option<String> {
    let (what, mend) = match error.raw_os_error()? {
        libc::EMFILE => ("open files of this process", "raise ulimit -n"),
        libc::ENFILE => ("open files of this host", "raise fs.file-max"),
        libc::EADDRNOTAVAIL => {
            ("local ports towards this VIP", "widen net.ipv4.ip_local_port_range")
        }
        libc::ENOBUFS | libc::ENOMEM => ("memory for sockets", "raise net.ipv4.tcp_mem"),
        _ => return None,
    };
    Some(format!("not dispatched: the client ran out of {what} ({error}); {mend}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_client_lacks_is_its_own_fault() {
        let text = |code| exhausted(&io::Error::from_raw_os_error(code));
        assert!(text(libc::EMFILE).unwrap().contains("ulimit -n"));
        assert!(text(libc::ENFILE).is_some() && text(libc::EADDRNOTAVAIL).is_some());
        assert!(text(libc::ENOBUFS).is_some() && text(libc::ENOMEM).is_some());
        for servers in [libc::ECONNREFUSED, libc::ENETUNREACH, libc::EHOSTUNREACH, libc::ETIMEDOUT]
        {
            assert_eq!(text(servers), None);
        }
        assert_eq!(exhausted(&io::Error::other("no code")), None);
    }
}
