//! `postroom bench`: a closed loop of clients over the routing service in this process, or over a server behind HTTP.
//!
//! ```text
//! mails (file, .eml or mix) --> drive (clients) --> target (service | http) --> figures --> table | JSON | SVG
//!                                     process (CPU time, memory)  --^
//! ```

mod chart;
mod drive;
mod figures;
mod http;
mod mails;
mod mix;
mod process;
mod table;
mod target;
mod work;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Args;

use super::common::{ModelArgs, Progress, load_to_serve};
use super::data::{ColumnArgs, DataArgs};
use super::output::{print, print_line};
use super::write_file::write_file;
use crate::routing::RoutingService;
use drive::{Drive, Stop, drive};
use figures::{Figures, Level, Memory, Rates, Tokens};
use mix::Mix;
use process::Process;
use target::Target;
use work::{MailWork, measure_work, sgemm_peak};

/// Arguments of `postroom bench`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  postroom bench --mix mixed --clients 1,4,16 --svg bench.svg\n  \
    postroom bench tickets.csv --requests 2000 --threads 1 --json\n  \
    postroom bench data/crumb/week.jsonl --url http://127.0.0.1:8080 --pid $(pidof postroom) --clients 16\n  \
    postroom bench data/crumb/week.jsonl --url http://127.0.0.1:3000/predict")]
pub(super) struct BenchArgs {
    /// Mail to measure with, in any format that `train` reads, or .eml files; without it a mix is made up.
    path: Option<PathBuf>,
    #[command(flatten)]
    columns: ColumnArgs,
    #[command(flatten)]
    model: ModelArgs,
    /// Made-up mail instead of a file: short (about 30 tokens), mixed, or long (some hundreds).
    #[arg(long, value_enum, default_value_t = Mix::Mixed, conflicts_with = "path")]
    mix: Mix,
    /// The same number gives the same made-up mail.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Clients that each wait for an answer before they ask again; several numbers are measured one after another.
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_value = "1", value_parser = clap::value_parser!(u16).range(1..))]
    clients: Vec<u16>,
    /// How long each number of clients is measured.
    #[arg(long, value_name = "S", default_value_t = 10.0, conflicts_with = "requests")]
    seconds: f64,
    /// Measure this many requests instead of a time.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    requests: Option<u32>,
    /// Requests before each measurement that are not counted.
    #[arg(long, value_name = "N", default_value_t = 32)]
    warm_up: u32,
    /// Ask a running server instead of routing here: postroom, or one with `/predict` as in text-embeddings-inference.
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// Process whose CPU time and memory are read when `--url` names a server on this machine.
    #[arg(long, requires = "url")]
    pid: Option<u32>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// Write the token windows of each mail as JSON lines, so that a peer can run on the same input.
    #[arg(long, value_name = "FILE", conflicts_with = "url")]
    windows: Option<PathBuf>,
    /// Draw latency and throughput into this file.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

pub(super) fn run(args: &BenchArgs) -> anyhow::Result<()> {
    let stop = match args.requests {
        Some(requests) => Stop::Requests(requests as usize),
        None if args.seconds > 0.0 && args.seconds < 86_400.0 => Stop::After(Duration::from_secs_f64(args.seconds)),
        None => bail!("--seconds {} is not between 0 and 86400", args.seconds),
    };
    let data = args.path.as_ref().map(|path| DataArgs { path: path.clone(), columns: args.columns.clone() });
    let mails = match &data {
        Some(data) => mails::read(data)?,
        None => mix::mails(args.mix, args.seed),
    };
    let source = match &data {
        Some(data) => data.path.display().to_string(),
        None => format!("made-up mail, {} (seed {})", args.mix, args.seed),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let bench = match &args.url {
        Some(url) => over_http(args, url, &mails)?,
        None => in_process(args, mails)?,
    };
    let figures = runtime.block_on(bench.measure(args, stop, source))?;
    if let Some(file) = &args.svg {
        write_file(file, chart::draw(&figures).as_bytes())?;
    }
    if args.json { print_line(serde_json::to_string_pretty(&figures)?) } else { print(table::render(&figures)) }
}

/// What is measured, and what is known of it before.
struct Bench {
    target: Target,
    name: String,
    process: Option<Process>,
    /// For each mail what the network must do; empty for a server, whose tokens nobody here knows.
    work: Vec<MailWork>,
    rates: Rates,
    before_load: Option<u64>,
}

fn in_process(args: &BenchArgs, mails: Vec<mails::BenchMail>) -> anyhow::Result<Bench> {
    let process = Process::this();
    let config = args.model.quiet_config()?;
    let before_load = process.as_ref().and_then(Process::memory).map(|memory| memory.now);
    let router = load_to_serve(&config.model)?;
    let (work, read_cpu) = measure_work(&mails, &router, &config.routing.email);
    if let Some(file) = &args.windows {
        let lines = work::window_lines(&mails, &router, &config.routing.email);
        write_file(file, lines.as_bytes())?;
    }
    let rates = Rates {
        router: Some(format!("{} {}", router.info.name, router.info.version)),
        engine: Some(router.classifier.encoder().engine()),
        threads: Some(rayon::current_num_threads()),
        sgemm_gflops: router.classifier.device().is_cpu().then(|| sgemm_peak(&router.info.encoder_config)),
        clean_and_tokenize_cpu_ms: read_cpu.map(|seconds| 1e3 * seconds),
    };
    let service = RoutingService::start(router, config.routing)?;
    let mails = mails.into_iter().map(|mail| mail.mail).collect();
    Ok(Bench {
        target: Target::Service { service, mails },
        name: "this process".to_owned(),
        process,
        work,
        rates,
        before_load,
    })
}

fn over_http(args: &BenchArgs, url: &str, mails: &[mails::BenchMail]) -> anyhow::Result<Bench> {
    let server = http::Server::parse(url)?;
    let requests = mails.iter().map(|mail| server.request(mail)).collect::<anyhow::Result<_>>()?;
    let process = match args.pid {
        Some(pid) => Some(Process::of(pid).with_context(|| format!("cannot read /proc/{pid}"))?),
        None => None,
    };
    Ok(Bench {
        target: Target::Http { server, requests },
        name: url.to_owned(),
        process,
        work: Vec::new(),
        rates: Rates::default(),
        before_load: None,
    })
}

impl Bench {
    async fn measure(self, args: &BenchArgs, stop: Stop, source: String) -> anyhow::Result<Figures> {
        let memory = || self.process.as_ref().and_then(Process::memory);
        let after_load = memory().map(|memory| memory.now);
        let mut levels = Vec::new();
        for &clients in &args.clients {
            let clients = usize::from(clients);
            let mut progress = Progress::new(&format!("{clients} clients"));
            let mut warm_up = Drive { clients, stop: Stop::Requests(args.warm_up as usize), first: 0 };
            if args.warm_up > 0 {
                drive(&self.target, warm_up, &mut |_, _| ()).await?;
            }
            let warm = memory();
            let before = self.process.as_ref().map(Process::cpu);
            warm_up.stop = stop;
            let outcome = drive(&self.target, warm_up, &mut |done, all| progress.tell(done, all)).await?;
            let cpu = self.process.as_ref().zip(before).map(|(process, before)| process.cpu().since(&before));
            levels.push(Level::new(clients, &outcome, cpu.as_ref(), &self.work, &self.rates, (warm, memory())));
        }
        let memory = memory().map(|memory| Memory {
            before_load_mb: self.before_load.map(figures::megabytes),
            after_load_mb: after_load.map(figures::megabytes),
            now_mb: figures::megabytes(memory.now),
            peak_mb: figures::megabytes(memory.peak),
        });
        let most = args.clients.iter().copied().max().unwrap_or(1);
        let tokens = Tokens::of(&self.work, usize::from(most));
        Ok(Figures::new((self.name, source, self.target.n_mails()), self.rates, tokens, memory, levels))
    }
}
