//! Where requests go: a plain HTTP base URL.

use std::io;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs as _};
use std::time::Duration;

use reqwest::Url;
use thiserror::Error;

const CHECK_TIMEOUT: Duration = Duration::from_secs(5);

/// A URL that cannot be replayed against. Every message names the mend.
#[derive(Debug, Error)]
pub enum TargetError {
    /// No URL.
    #[error("{url} is not a URL ({cause}): write http://host:port")]
    Syntax {
        /// As given.
        url: String,
        /// Why.
        cause: <Url as std::str::FromStr>::Err,
    },
    /// TLS.
    #[error("{0}: https is not supported yet: replay against the plain http port of the service")]
    Tls(String),
    /// Any other scheme.
    #[error("{0}: only http:// can be replayed against: write http://host:port")]
    Scheme(String),
    /// User and password, query or fragment.
    #[error("{0}: give scheme, host, port and path only; a token goes into a file (--token-file)")]
    Extra(String),
    /// The name does not resolve.
    #[error("{host}: cannot resolve ({cause}): check the name or give an address")]
    Resolve {
        /// Host and port.
        host: String,
        /// Why.
        cause: io::Error,
    },
    /// It resolves to nothing.
    #[error("{0}: resolves to no address: check the name or give an address")]
    NoAddress(String),
    /// Nothing listens.
    #[error("{address}: cannot connect ({cause}): start the service, or correct the URL")]
    Unreachable {
        /// The address.
        address: SocketAddr,
        /// Why.
        cause: io::Error,
    },
}

/// A resolved base URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    address: SocketAddr,
    authority: String,
    base_path: String,
}

impl Target {
    /// Parses and resolves `url`, once: all requests of a run go to one address.
    ///
    /// # Errors
    /// Every [`TargetError`] but [`TargetError::Unreachable`].
    pub fn resolve(url: &str) -> Result<Self, TargetError> {
        let parsed: Url =
            url.parse().map_err(|cause| TargetError::Syntax { url: url.to_owned(), cause })?;
        match parsed.scheme() {
            "http" => {}
            "https" => return Err(TargetError::Tls(url.to_owned())),
            _ => return Err(TargetError::Scheme(url.to_owned())),
        }
        let extra = !parsed.username().is_empty()
            || parsed.password().is_some()
            || parsed.query().is_some()
            || parsed.fragment().is_some();
        let Some(host) = parsed.host_str().filter(|_| !extra) else {
            return Err(TargetError::Extra(redacted(&parsed)));
        };
        let port = parsed.port().unwrap_or(80);
        let address = first_address(host, port)?;
        let authority =
            parsed.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
        let base_path = parsed.path().trim_end_matches('/').to_owned();
        Ok(Self { address, authority, base_path })
    }

    /// The address that requests go to.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Value of the `Host` field.
    pub(super) fn authority(&self) -> &str {
        &self.authority
    }

    /// Path of the base URL, without a final slash.
    pub(super) fn base_path(&self) -> &str {
        &self.base_path
    }

    /// Opens and closes one connection.
    ///
    /// # Errors
    /// [`TargetError::Unreachable`].
    pub fn check(&self) -> Result<(), TargetError> {
        TcpStream::connect_timeout(&self.address, CHECK_TIMEOUT)
            .map(drop)
            .map_err(|cause| TargetError::Unreachable { address: self.address, cause })
    }
}

fn first_address(host: &str, port: u16) -> Result<SocketAddr, TargetError> {
    // A URL brackets IPv6 addresses, the resolver does not.
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let named = || format!("{host}:{port}");
    (bare, port)
        .to_socket_addrs()
        .map_err(|cause| TargetError::Resolve { host: named(), cause })?
        .next()
        .ok_or_else(|| TargetError::NoAddress(named()))
}

/// A password must not reach a terminal or a log.
fn redacted(url: &Url) -> String {
    format!("{}://{}{}", url.scheme(), url.host_str().unwrap_or_default(), url.path())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_url_gives_address_host_field_and_path() {
        let target = Target::resolve("http://127.0.0.1:8080/llm/").unwrap();
        assert_eq!(target.address().to_string(), "127.0.0.1:8080");
        assert_eq!((target.authority(), target.base_path()), ("127.0.0.1:8080", "/llm"));
        let target = Target::resolve("http://[::1]").unwrap();
        assert_eq!(target.address().to_string(), "[::1]:80");
        assert_eq!((target.authority(), target.base_path()), ("[::1]", ""));
    }

    #[test]
    fn what_cannot_be_replayed_against_is_refused_with_the_mend() {
        let message = |url| Target::resolve(url).unwrap_err().to_string();
        assert!(message("https://127.0.0.1").contains("plain http port"));
        assert!(message("ftp://127.0.0.1").contains("write http://host:port"));
        assert!(message("127.0.0.1:80").contains("write http://host:port"));
        let leaky = message("http://user:secret@127.0.0.1");
        assert!(leaky.contains("token") && !leaky.contains("secret"), "{leaky}");
    }

    #[test]
    fn a_closed_port_is_unreachable() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let target = Target::resolve(&format!("http://{address}")).unwrap();
        target.check().unwrap();
        drop(listener);
        assert!(target.check().unwrap_err().to_string().contains("start the service"));
    }
}
