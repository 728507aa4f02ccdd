//! CPU time and memory of a process, as Linux tells them under `/proc`; nothing elsewhere.

use std::path::{Path, PathBuf};

/// A process on this machine.
#[derive(Debug, Clone)]
pub(super) struct Process {
    folder: PathBuf,
}

/// Resident memory in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Resident {
    /// At this moment.
    pub(super) now: u64,
    /// Most since the process started.
    pub(super) peak: u64,
}

/// CPU seconds used so far.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct CpuTime {
    /// User and system time of all threads, also of those that have ended; in steps of 10 ms.
    pub(super) total: f64,
    /// Of the threads that run the network; 0 where they cannot be told apart.
    pub(super) network: f64,
}

impl CpuTime {
    /// What was used after `before`.
    pub(super) fn since(&self, before: &Self) -> Self {
        Self { total: self.total - before.total, network: self.network - before.network }
    }
}

/// Linux counts in ticks of this many a second for every program, whatever the kernel's own clock.
const TICKS_PER_SECOND: f64 = 100.0;

impl Process {
    /// This process; `None` where there is no `/proc`.
    pub(super) fn this() -> Option<Self> {
        Self::at(Path::new("/proc/self")).ok()
    }

    /// Another process.
    pub(super) fn of(pid: u32) -> std::io::Result<Self> {
        Self::at(&Path::new("/proc").join(pid.to_string()))
    }

    fn at(folder: &Path) -> std::io::Result<Self> {
        std::fs::read_to_string(folder.join("status")).map(|_| Self { folder: folder.to_owned() })
    }

    pub(super) fn memory(&self) -> Option<Resident> {
        let status = std::fs::read_to_string(self.folder.join("status")).ok()?;
        Some(Resident { now: kilobytes(&status, "VmRSS:")? * 1024, peak: kilobytes(&status, "VmHWM:")? * 1024 })
    }

    pub(super) fn cpu(&self) -> CpuTime {
        let stat = std::fs::read_to_string(self.folder.join("stat")).unwrap_or_default();
        CpuTime {
            total: ticks(&stat).unwrap_or(0.0) / TICKS_PER_SECOND,
            network: self.network_seconds().unwrap_or(0.0),
        }
    }

    fn network_seconds(&self) -> Option<f64> {
        let mut seconds = 0.0;
        for task in std::fs::read_dir(self.folder.join("task")).ok()? {
            let task = task.ok()?.path();
            // A thread may end while the list is read.
            let Ok(name) = std::fs::read_to_string(task.join("comm")) else { continue };
            if name.trim() == "model" || name.starts_with("compute-") {
                seconds += scheduled(&task).unwrap_or(0.0);
            }
        }
        Some(seconds)
    }
}

/// CPU seconds of the calling thread.
pub(super) fn thread_seconds() -> Option<f64> {
    scheduled(Path::new("/proc/thread-self"))
}

/// The first number of `schedstat`: nanoseconds on a CPU.
fn scheduled(task: &Path) -> Option<f64> {
    let text = std::fs::read_to_string(task.join("schedstat")).ok()?;
    Some(text.split_whitespace().next()?.parse::<f64>().ok()? / 1e9)
}

fn kilobytes(status: &str, key: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(key))?;
    line.split_whitespace().next()?.parse().ok()
}

/// `utime` and `stime`, fields 14 and 15; the second field is a name in parentheses that may hold anything.
fn ticks(stat: &str) -> Option<f64> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    Some(fields.next()?.parse::<f64>().ok()? + fields.next()?.parse::<f64>().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_behind_a_name_with_parentheses_and_blanks() {
        assert_eq!(ticks("12 (a) b) S 1 2 3 4 5 6 7 8 9 10 250 50 0 0"), Some(300.0));
        assert_eq!(ticks("12 (cut"), None);
        assert_eq!(kilobytes("VmPeak:\t 9 kB\nVmHWM:\t   2048 kB\n", "VmHWM:"), Some(2048));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_process_has_memory_and_a_peak_no_lower() {
        let memory = Process::this().and_then(|process| process.memory()).unwrap();
        assert!(memory.now > 0 && memory.peak >= memory.now);
        assert!(Process::of(u32::MAX).is_err());
    }
}
