//! What several commands share: where models are found, threads, progress.

use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Context;
use candle_core::DType;
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};

use super::allocator;
use crate::artifact::{
    Router, SharedEncoders, find_model, load_router, load_router_sharing, resolve_router, self_test,
};
use crate::config::{Config, ModelConfig, Overrides, environment};
use crate::inference::DeviceChoice;
use crate::routing::{Loader, Routers, RoutingService};
use crate::telemetry::{self, TelemetryConfig};

/// Which settings, which router, on what. A flag wins over the environment, that over the file.
#[derive(Debug, Clone, Args)]
pub(super) struct ModelArgs {
    /// File with settings; config/default.toml documents them all.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Directory of the router [default: models/crumb]; also looked for beside the program and in /usr/share/postroom.
    #[arg(long, value_name = "DIR")]
    router: Option<PathBuf>,
    /// Where the network runs: auto, cpu or cuda:N [default: auto].
    #[arg(long)]
    device: Option<DeviceChoice>,
    /// Threads of the network; 0 takes what the machine gives this process [default: 0].
    #[arg(long)]
    threads: Option<usize>,
}

impl ModelArgs {
    /// The settings of a command that answers and ends: its log says only what went wrong, unless the settings say more.
    pub(super) fn quiet_config(&self) -> anyhow::Result<Config> {
        let config = self.read(&Overrides::default())?;
        let usual = TelemetryConfig::default();
        let quiet = TelemetryConfig { log: "warn".to_owned(), ..config.telemetry.clone() };
        telemetry::init(if config.telemetry.log == usual.log { &quiet } else { &config.telemetry })?;
        Ok(config)
    }

    /// The settings of the service, with the log started; `more` adds its flags.
    pub(super) fn config(&self, more: &Overrides) -> anyhow::Result<Config> {
        let config = self.read(more)?;
        telemetry::init(&config.telemetry)?;
        Ok(config)
    }

    fn read(&self, more: &Overrides) -> anyhow::Result<Config> {
        let overrides =
            Overrides { router: self.router.clone(), device: self.device, threads: self.threads, ..more.clone() };
        Ok(Config::load(self.config.as_deref(), environment(), &overrides)?)
    }
}

/// A number of things of which none would be no answer.
pub(super) fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse::<usize>() {
        Ok(0) => Err("it must be at least 1".to_owned()),
        Ok(number) => Ok(number),
        Err(error) => Err(error.to_string()),
    }
}

/// Loads the router of the settings onto its device.
pub(super) fn load(config: &ModelConfig) -> anyhow::Result<Router> {
    set_threads(config.threads)?;
    let device = config.device.open()?;
    let router = load_router(&find_model(&config.router), DType::F32, &device)?;
    tell(&router);
    Ok(router)
}

/// [`load`] for a process that answers requests from now on.
pub(super) fn load_to_serve(config: &ModelConfig) -> anyhow::Result<Router> {
    allocator::keep_little();
    let router = load(config)?;
    allocator::give_back();
    Ok(router)
}

/// Loads every router of the settings, and the new ones from now on: each verified and tested before it answers.
pub(super) fn load_routers(config: &Config) -> anyhow::Result<Routers> {
    allocator::keep_little();
    set_threads(config.model.threads)?;
    let device = config.model.device.open()?;
    let (routing, shared) = (config.routing.clone(), SharedEncoders::default());
    let loader: Loader = Box::new(move |path| {
        let started = Instant::now();
        // Once, so that what is tested is what was loaded, whichever version comes in force meanwhile.
        let place = resolve_router(path)?;
        let router = load_router_sharing(&place, DType::F32, &device, &shared)?;
        let tested = self_test(&place, &router)?;
        tell(&router);
        tracing::info!(
            path = %place.display(),
            version = router.info.version,
            probes = tested.probes,
            largest_difference = tested.largest_difference,
            took_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
            "router loaded and tested"
        );
        let service = RoutingService::start(router, routing.clone())?;
        allocator::give_back();
        Ok(service)
    });
    let mut further = config.routers.clone();
    further.dir = further.dir.as_deref().map(find_model);
    further.list.iter_mut().for_each(|router| router.path = find_model(&router.path));
    Ok(Routers::open(&further, &find_model(&config.model.router), loader)?)
}

fn tell(router: &Router) {
    if !router.info.unknown_tensors.is_empty() {
        tracing::warn!(tensors = ?router.info.unknown_tensors, "the encoder's file holds tensors that nobody reads");
    }
    tracing::info!(
        engine = router.classifier.encoder().engine(),
        threads = rayon::current_num_threads(),
        "network loaded"
    );
}

/// Sizes the thread pool once. Without a number the standard library counts what cgroup and affinity allow.
pub(super) fn set_threads(threads: usize) -> anyhow::Result<()> {
    let threads = match threads {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        some => some,
    };
    rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .thread_name(|index| format!("compute-{index}"))
        .build_global()
        .context("cannot start the network's threads")
}

/// A progress bar on a terminal, a line now and then elsewhere.
pub(super) struct Progress {
    bar: ProgressBar,
    what: String,
    told: std::time::Instant,
    plain: bool,
}

impl Progress {
    pub(super) fn new(what: &str) -> Self {
        let plain = !std::io::stderr().is_terminal();
        let bar = if plain { ProgressBar::hidden() } else { ProgressBar::no_length() };
        let style = ProgressStyle::with_template("{msg} [{bar:30}] {pos}/{len} {elapsed} (left: {eta})");
        if let Ok(style) = style {
            bar.set_style(style);
        }
        bar.set_message(what.to_owned());
        Self { bar, what: what.to_owned(), told: std::time::Instant::now(), plain }
    }

    /// A line of its own, above the bar.
    pub(super) fn note(&self, line: &str) {
        self.bar.suspend(|| {
            // Where standard error is closed there is nobody to tell.
            let _ = writeln!(std::io::stderr().lock(), "{}: {line}", self.what);
        });
    }

    pub(super) fn tell(&mut self, done: usize, all: usize) {
        self.bar.set_length(all as u64);
        self.bar.set_position(done as u64);
        if self.plain && (done == all || self.told.elapsed() > Duration::from_secs(10)) {
            self.told = std::time::Instant::now();
            // Where standard error is closed there is nobody to tell.
            let _ = writeln!(std::io::stderr().lock(), "{}: {done} of {all}", self.what);
        }
        if done == all {
            self.bar.finish();
        }
    }
}
