//! Requests and streams for real sockets.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::thread::{self, JoinHandle};

const HEAD: &str =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";

/// A request with a body of `len` bytes.
pub(crate) fn request(len: usize) -> Vec<u8> {
    let head = format!("POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {len}\r\n\r\n");
    [head.as_bytes(), &vec![b'x'; len]].concat()
}

fn chunk(data: &str) -> String {
    format!("{:x}\r\n{data}\r\n", data.len())
}

/// A good stream of `tokens` tokens, in the parts that an engine writes.
pub(crate) fn stream(tokens: usize) -> Vec<String> {
    let token = chunk("data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"token\"}}]}\n\n");
    let finish = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
    let end = [chunk(finish), chunk("data: [DONE]\n\n"), "0\r\n\r\n".to_owned()].concat();
    let mut parts = vec![HEAD.to_owned()];
    parts.extend(std::iter::repeat_n(token, tokens));
    parts.push(end);
    parts
}

/// Reads one request; false when the client has closed.
fn take_request(reader: &mut BufReader<TcpStream>) -> bool {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap() == 0 {
            return false;
        }
        if let Some(value) = line.strip_prefix("Content-Length: ") {
            length = value.trim().parse().unwrap();
        }
        if line == "\r\n" {
            break;
        }
    }
    reader.read_exact(&mut vec![0; length]).unwrap();
    true
}

/// Serves `connections` one after the other accepted, all at once: each request gets `parts`.
pub(crate) fn serve(listener: TcpListener, connections: usize, parts: &[String]) -> JoinHandle<()> {
    let parts = parts.to_vec();
    thread::spawn(move || {
        let one = |_| {
            let (mut stream, _) = listener.accept().unwrap();
            stream.set_nodelay(true).unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let parts = &parts;
            move || {
                while take_request(&mut reader) {
                    parts.iter().for_each(|part| stream.write_all(part.as_bytes()).unwrap());
                }
            }
        };
        thread::scope(|scope| (0..connections).map(one).for_each(|it| drop(scope.spawn(it))));
    })
}

/// Sends a request and reads the response to its last chunk.
pub(crate) fn exchange(client: &mut TcpStream, request: &[u8], response_bytes: usize) {
    client.write_all(request).unwrap();
    client.read_exact(&mut vec![0; response_bytes]).unwrap();
}
