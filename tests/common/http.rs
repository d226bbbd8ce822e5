//! A small HTTP server on the loopback, in the place of a device that a tool talks to.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

/// What a tool asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// "GET", "POST".
    pub method: String,
    /// Path with its query.
    pub path: String,
    /// The header Authorization, or empty.
    pub authorization: String,
    /// Body.
    pub body: String,
}

/// Serves until the test's process ends; gives the address ("http://127.0.0.1:PORT"). The answer is status and body.
pub fn serve(answer: impl Fn(&Request) -> (u16, String) + Send + Sync + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("an address");
    let answer = Arc::new(answer);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // A client that goes away is no fault of the server.
            let _ = talk(stream, answer.as_ref());
        }
    });
    format!("http://{address}")
}

fn talk(stream: TcpStream, answer: &(dyn Fn(&Request) -> (u16, String) + Sync)) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let mut words = line.split_whitespace();
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let mut request = Request {
        method: method.to_owned(),
        path: path.to_owned(),
        authorization: String::new(),
        body: String::new(),
    };
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim().split_once(':') else { break };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.trim().parse().unwrap_or(0),
            "authorization" => request.authorization = value.trim().to_owned(),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    request.body = String::from_utf8_lossy(&body).into_owned();
    let (status, text) = answer(&request);
    let head = format!("HTTP/1.1 {status} X\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", text.len());
    reader.get_mut().write_all([head, text].concat().as_bytes())
}
