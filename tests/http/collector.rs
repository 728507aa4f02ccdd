//! A collector of traces: takes exports over HTTP and keeps them.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;

/// One export as it came.
pub(crate) struct Export {
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

pub(crate) struct Collector {
    pub(crate) address: SocketAddr,
    exports: Receiver<Export>,
}

impl Collector {
    /// One that takes everything.
    pub(crate) fn start() -> Self {
        Self::answering(&[])
    }

    /// One that gives these answers first, in order, whatever comes.
    pub(crate) fn answering(first: &[&'static str]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (keep, exports) = channel();
        let first = Arc::new(Mutex::new(first.iter().copied().collect()));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                // Connections stay open: each needs a thread.
                let (keep, first) = (keep.clone(), Arc::clone(&first));
                std::thread::spawn(move || serve(&mut stream.unwrap(), &keep, &first));
            }
        });
        Self { address, exports }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The next export; waits for it.
    pub(crate) fn export(&self) -> Export {
        self.exports.recv_timeout(Duration::from_secs(20)).expect("an export comes")
    }

    /// Exports that came and were not looked at.
    pub(crate) fn rest(&self) -> Vec<Export> {
        self.exports.try_iter().collect()
    }

    /// Waits until as many spans have come.
    pub(crate) fn spans(&self, count: usize) -> Vec<Span> {
        let (mut spans, start) = (Vec::new(), Instant::now());
        while spans.len() < count {
            assert!(start.elapsed() < Duration::from_secs(20), "{} spans of {count}: {spans:?}", spans.len());
            spans.extend(self.export().spans());
        }
        spans
    }
}

impl Export {
    pub(crate) fn spans(&self) -> Vec<Span> {
        let request = ExportTraceServiceRequest::decode(self.body.as_slice()).unwrap();
        let scopes = request.resource_spans.into_iter().flat_map(|resource| resource.scope_spans);
        scopes.flat_map(|scope| scope.spans).collect()
    }

    /// The attributes of the resource.
    pub(crate) fn resource(&self) -> Vec<KeyValue> {
        let mut request = ExportTraceServiceRequest::decode(self.body.as_slice()).unwrap();
        request.resource_spans.remove(0).resource.unwrap().attributes
    }
}

/// An attribute as text; empty where it is missing.
pub(crate) fn attribute(attributes: &[KeyValue], key: &str) -> String {
    let value = attributes.iter().find(|attribute| attribute.key == key).and_then(|found| found.value.clone()?.value);
    value.map_or_else(String::new, text)
}

fn text(value: Value) -> String {
    match value {
        Value::StringValue(text) => text,
        Value::IntValue(number) => number.to_string(),
        Value::DoubleValue(number) => number.to_string(),
        Value::BoolValue(yes) => yes.to_string(),
        Value::ArrayValue(array) => {
            array.values.into_iter().filter_map(|value| value.value.map(text)).collect::<Vec<_>>().join(",")
        }
        other => panic!("{other:?}"),
    }
}

/// Answers the requests of one connection until it ends.
fn serve(stream: &mut TcpStream, keep: &Sender<Export>, first: &Mutex<VecDeque<&'static str>>) {
    let mut read = Vec::new();
    loop {
        let head = loop {
            if let Some(end) = read.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
                break String::from_utf8(read.drain(..end + 4).collect()).unwrap().to_ascii_lowercase();
            }
            if !more(stream, &mut read) {
                return;
            }
        };
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap().parse().unwrap();
        while read.len() < length {
            if !more(stream, &mut read) {
                return;
            }
        }
        let body = read.drain(..length).collect();
        // The test may be over.
        let _ = keep.send(Export { head, body });
        let status = first.lock().unwrap().pop_front().unwrap_or("200 OK");
        if stream.write_all(format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n").as_bytes()).is_err() {
            return;
        }
    }
}

fn more(stream: &mut TcpStream, read: &mut Vec<u8>) -> bool {
    let mut bytes = [0; 4096];
    match stream.read(&mut bytes) {
        Ok(count) if count > 0 => {
            read.extend_from_slice(&bytes[..count]);
            true
        }
        _ => false,
    }
}
