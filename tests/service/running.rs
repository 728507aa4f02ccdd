//! A service as a process of its own, asked without conveniences.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

pub(crate) const TEXT: &str = "content-type: text/plain\r\n";

/// Runs a command of the program to its end.
pub(crate) fn postroom(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_postroom")).args(arguments).env("USER", "ann").output().unwrap()
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A path as an argument.
pub(crate) fn name(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// A port that was free a moment ago, for a service that cannot say which one it got.
pub(crate) fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// A running service and all that it has logged.
pub(crate) struct Service {
    pub(crate) process: Child,
    pub(crate) port: u16,
    pub(crate) log: Arc<Mutex<String>>,
}

impl Service {
    /// Starts `postroom serve` with settings from the environment and waits until it is ready. `shell` comes before it.
    pub(crate) fn start(shell: &str, settings: &[(&str, &str)]) -> Self {
        let program = env!("CARGO_BIN_EXE_postroom");
        let mut process = Command::new("sh")
            .args(["-c", &format!("{shell} exec {program} serve --port 0")])
            .envs(settings.iter().copied())
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stderr.take().unwrap()).lines().map_while(Result::ok);
        let (mut port, log) = (0, Arc::new(Mutex::new(String::new())));
        for line in lines.by_ref() {
            log.lock().unwrap().push_str(&line);
            let event: serde_json::Value = serde_json::from_str(&line).unwrap();
            if event["message"] == "listening" {
                port = event["address"].as_str().unwrap().rsplit(':').next().unwrap().parse().unwrap();
            }
            if event["message"] == "ready" {
                break;
            }
        }
        let rest = Arc::clone(&log);
        std::thread::spawn(move || lines.for_each(|line| rest.lock().unwrap().push_str(&(line + "\n"))));
        Self { process, port, log }
    }

    /// As [`Service::start`], with a log that nobody reads.
    pub(crate) fn unheard(stderr: Stdio, settings: &[(&str, &str)]) -> Self {
        let port = free_port();
        let process = Command::new(env!("CARGO_BIN_EXE_postroom"))
            .args(["serve", "--port", &port.to_string()])
            .envs(settings.iter().copied())
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .stderr(stderr)
            .spawn()
            .unwrap();
        let mut service = Self { process, port, log: Arc::default() };
        let start = Instant::now();
        while !service.get("/readyz").is_ok_and(|answer| answer.starts_with("HTTP/1.1 200")) {
            let ended = service.process.try_wait().unwrap();
            assert!(ended.is_none() && start.elapsed() < Duration::from_secs(120), "never ready: {ended:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
        service
    }

    pub(crate) fn ask(&self, request: &str) -> std::io::Result<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
        // A service that hangs fails its test, and does not hang it.
        stream.set_read_timeout(Some(Duration::from_secs(120)))?;
        stream.write_all(request.as_bytes())?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        Ok(String::from_utf8_lossy(&answer).into_owned())
    }

    pub(crate) fn post(&self, path: &str, headers: &str, body: &str) -> std::io::Result<String> {
        let length = body.len();
        self.ask(&format!(
            "POST {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n{headers}content-length: {length}\r\n\r\n{body}"
        ))
    }

    pub(crate) fn get(&self, path: &str) -> std::io::Result<String> {
        self.ask(&format!("GET {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n"))
    }

    pub(crate) fn signal(&self, name: &str) {
        assert!(Command::new("kill").args([name, &self.process.id().to_string()]).status().unwrap().success());
    }

    /// CPU time used so far, in hundredths of a second.
    pub(crate) fn cpu(&self) -> u64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.process.id())).unwrap();
        let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
        fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
    }

    /// Waits until the log holds a word.
    pub(crate) fn wait_for(&self, word: &str) {
        self.wait_for_after(0, word);
    }

    /// Waits until the log holds a word behind its first so many bytes.
    pub(crate) fn wait_for_after(&self, told: usize, word: &str) {
        let start = Instant::now();
        while !self.log.lock().unwrap()[told..].contains(word) {
            assert!(start.elapsed() < Duration::from_secs(60), "`{word}` never came: {}", self.log.lock().unwrap());
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
