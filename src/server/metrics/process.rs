//! The process as the system sees it, under the names that every dashboard knows. Linux only; elsewhere nothing is told.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

/// Reads `/proc` when asked.
#[derive(Debug)]
pub(super) struct ProcessCollector;

/// Ticks of `/proc/*/stat` in a second: 100 on every Linux that Rust runs on (`USER_HZ`).
const TICKS: f64 = 100.0;

impl Collector for ProcessCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let Some(process) = Process::read() else { return Ok(()) };
        for (name, help, value) in [
            ("process_resident_memory_bytes", "Memory in use", process.resident),
            ("process_open_fds", "Open file descriptors", process.open_files),
            ("process_max_fds", "File descriptors that may be open", process.max_files),
            ("process_threads", "Threads", process.threads),
            ("process_start_time_seconds", "When the process started, since 1970", process.started),
        ] {
            let gauge = ConstGauge::new(value);
            gauge.encode(encoder.encode_descriptor(name, help, None, gauge.metric_type())?)?;
        }
        let cpu = ConstCounter::new(process.cpu);
        cpu.encode(encoder.encode_descriptor("process_cpu_seconds", "CPU time used", None, cpu.metric_type())?)
    }
}

struct Process {
    resident: f64,
    open_files: f64,
    max_files: f64,
    threads: f64,
    started: f64,
    cpu: f64,
}

impl Process {
    fn read() -> Option<Self> {
        let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
        // The name in brackets may hold anything; what follows it is numbers.
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        // Numbered as in proc(5), where the first of these is 3.
        let field = |number: usize| fields.get(number - 3)?.parse::<f64>().ok();
        let status = std::fs::read_to_string("/proc/self/status").ok()?;
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
        let limits = std::fs::read_to_string("/proc/self/limits").ok()?;
        let max_files = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
        let booted = std::fs::read_to_string("/proc/stat").ok()?;
        let booted: f64 = booted.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()?;
        Some(Self {
            resident: 1024.0 * resident.trim().trim_end_matches(" kB").parse::<f64>().ok()?,
            open_files: std::fs::read_dir("/proc/self/fd").ok()?.count() as f64,
            max_files: max_files.split_whitespace().next()?.parse().ok().unwrap_or(f64::INFINITY),
            threads: field(20)?,
            started: booted + field(22)? / TICKS,
            cpu: (field(14)? + field(15)?) / TICKS,
        })
    }
}

#[cfg(test)]
mod tests {
    #[cfg(target_os = "linux")]
    #[test]
    fn this_process_has_memory_threads_and_files() {
        let process = super::Process::read().unwrap();
        assert!(process.resident > 1e6 && process.threads >= 1.0 && process.open_files >= 3.0);
        assert!(process.started > 1.7e9 && process.max_files >= process.open_files);
    }
}
