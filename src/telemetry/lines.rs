//! Log lines on their way out. A thread of its own writes them: a pipe whose reader stalls blocks whoever writes to it,
//! and that must be nobody who answers requests.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use crate::server::count_lost_log_line;

/// Bytes of lines that wait to be written: some seconds of a busy service. What comes then is lost and counted.
const MAX_WAITING_BYTES: usize = 512 * 1024;

/// Lines for the thread that writes them.
pub(super) struct LogLines {
    to_thread: Sender<Vec<u8>>,
    /// Bytes that are not written yet.
    waiting: Arc<AtomicUsize>,
}

impl LogLines {
    /// Starts the thread that writes to `out`.
    ///
    /// # Errors
    /// Where the system gives no thread.
    pub(super) fn to(out: impl Write + Send + 'static) -> io::Result<Self> {
        let (to_thread, lines) = channel();
        let waiting = Arc::new(AtomicUsize::new(0));
        let written = Arc::clone(&waiting);
        std::thread::Builder::new().name("log".to_owned()).spawn(move || write_each(&lines, out, &written))?;
        Ok(Self { to_thread, waiting })
    }

    fn put(&self, line: &[u8]) {
        let before = self.waiting.fetch_add(line.len(), Ordering::Relaxed);
        // A line that is larger than all the room may still go alone.
        let fits = before == 0 || before.saturating_add(line.len()) <= MAX_WAITING_BYTES;
        if !fits || self.to_thread.send(line.to_vec()).is_err() {
            self.waiting.fetch_sub(line.len(), Ordering::Relaxed);
            count_lost_log_line();
        }
    }

    /// Waits until every line is written; `false` where that takes longer than `time`.
    pub(super) fn flush(&self, time: Duration) -> bool {
        let start = Instant::now();
        while self.waiting.load(Ordering::Acquire) > 0 {
            if start.elapsed() >= time {
                return false;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        true
    }
}

/// Each line comes as one write.
impl Write for &LogLines {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.put(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn write_each(lines: &Receiver<Vec<u8>>, out: impl Write, waiting: &AtomicUsize) {
    let mut out = Out { out, torn: false };
    for line in lines {
        out.write(&line);
        waiting.fetch_sub(line.len(), Ordering::Release);
    }
}

/// Where the lines go.
struct Out<W> {
    out: W,
    torn: bool,
}

impl<W: Write> Out<W> {
    fn write(&mut self, line: &[u8]) {
        // Half a line may stand there: what comes after it must not be joined to it.
        let begun = if self.torn { self.out.write_all(b"\n") } else { Ok(()) };
        self.torn = begun.and_then(|()| self.out.write_all(line)).is_err();
        if self.torn {
            count_lost_log_line();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// A disk with room for so many more bytes.
    struct Disk {
        room: usize,
        kept: Vec<u8>,
    }

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.room == 0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            let fits = bytes.len().min(self.room);
            self.room -= fits;
            self.kept.extend_from_slice(&bytes[..fits]);
            Ok(fits)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_full_disk_costs_log_lines_and_the_next_one_stands_by_itself() {
        let mut log = Out { out: Disk { room: 9, kept: Vec::new() }, torn: false };
        let lines = [("first\n", 0), ("second\n", 0), ("third\n", 0), ("fourth\n", 100), ("fifth\n", 0)];
        let written = lines.map(|(line, room)| {
            log.out.room += room;
            log.write(line.as_bytes());
            !log.torn
        });
        assert_eq!(written, [true, false, false, true, true]);
        assert_eq!(String::from_utf8_lossy(&log.out.kept), "first\nsec\nfourth\nfifth\n");
    }

    /// A pipe whose reader takes nothing while the lock is held.
    #[derive(Clone, Default)]
    struct Pipe(Arc<Mutex<Vec<u8>>>);

    impl Write for Pipe {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_reader_that_stalls_holds_up_nobody_and_costs_the_lines_that_find_no_room() {
        let pipe = Pipe::default();
        let lines = LogLines::to(pipe.clone()).unwrap();
        let line = [vec![b'x'; 1023], vec![b'\n']].concat();
        let stalled = pipe.0.lock().unwrap();
        for _ in 0..MAX_WAITING_BYTES / 1024 + 100 {
            (&lines).write_all(&line).unwrap();
        }
        assert!(!lines.flush(Duration::from_millis(20)));
        drop(stalled);
        assert!(lines.flush(Duration::from_secs(60)));
        assert_eq!(pipe.0.lock().unwrap().len(), MAX_WAITING_BYTES);
        (&lines).write_all(b"next\n").unwrap();
        assert!(lines.flush(Duration::from_secs(60)));
        assert!(pipe.0.lock().unwrap().ends_with(b"x\nnext\n"));
    }
}
