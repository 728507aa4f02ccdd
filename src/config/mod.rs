//! All settings, from four places: the defaults, a file, the environment, flags. Later ones win; a name that does not
//! exist is refused wherever it comes from. The standard variables of OpenTelemetry stand right above the defaults.
//!
//! Each module owns its own settings; this one only puts them together. `config/default.toml` documents every one.
//!
//! ```
//! use postroom::config::{Config, Overrides};
//!
//! let environment = [("POSTROOM_SERVER_PORT".to_owned(), "9000".to_owned())];
//! let config = Config::load(None, environment, &Overrides::default())?;
//! assert_eq!(config.server.port, 9000);
//! # Ok::<(), postroom::config::ConfigError>(())
//! ```

mod check;
mod environment;
mod error;
mod layers;
mod schema;
mod standard;

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

pub use environment::{environment, user};
pub use error::{ConfigError, Source};
pub use schema::DEFAULT_TOML;

use crate::inference::DeviceChoice;
use crate::routing::{RoutersConfig, RoutingConfig};
use crate::server::ServerConfig;
use crate::telemetry::TelemetryConfig;

/// Every setting.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// The HTTP service.
    pub server: ServerConfig,
    /// The router and where it runs.
    pub model: ModelConfig,
    /// The routers beside that one.
    pub routers: RoutersConfig,
    /// How mail becomes a decision.
    pub routing: RoutingConfig,
    /// The log and traces.
    pub telemetry: TelemetryConfig,
}

/// Which router runs, and where.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ModelConfig {
    /// Directory of the router.
    pub router: PathBuf,
    /// Device of the network.
    pub device: DeviceChoice,
    /// Threads of a forward pass on the CPU; 0: as many as there are cores.
    pub threads: usize,
}

impl Default for ModelConfig {
    fn default() -> Self {
        Self { router: PathBuf::from("models/crumb"), device: DeviceChoice::Auto, threads: 0 }
    }
}

/// Settings given as flags; they win over all others.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Overrides {
    /// `--host`.
    pub host: Option<IpAddr>,
    /// `--port`.
    pub port: Option<u16>,
    /// `--router`.
    pub router: Option<PathBuf>,
    /// `--device`.
    pub device: Option<DeviceChoice>,
    /// `--threads`.
    pub threads: Option<usize>,
}

impl Config {
    /// Reads the settings. `environment` may hold any variables; those that start with `POSTROOM_` are looked at, and of
    /// those that start with `OTEL_` the ones about traces ([`environment()`] reads the process's own). `file` wins over the variable `POSTROOM_CONFIG`.
    ///
    /// # Errors
    /// [`ConfigError`], naming the setting, where it comes from and what would be valid.
    pub fn load(
        file: Option<&Path>,
        environment: impl IntoIterator<Item = (String, String)>,
        overrides: &Overrides,
    ) -> Result<Self, ConfigError> {
        let variables = environment::known(environment);
        let file = file.map(Path::to_owned).or_else(|| environment::config_file(&variables));
        let mut layers = layers::Layers::new();
        layers.standard(&variables)?;
        if let Some(path) = file {
            layers.file(&path)?;
        }
        layers.variables(&variables)?;
        let mut config = layers.build(&Source::Defaults)?;
        config.apply(overrides);
        check::check(&config).map_err(|refusal| refusal.of(&Source::Flags))?;
        Ok(config)
    }

    fn apply(&mut self, overrides: &Overrides) {
        let Overrides { host, port, router, device, threads } = overrides.clone();
        self.server.host = host.unwrap_or(self.server.host);
        self.server.port = port.unwrap_or(self.server.port);
        self.model.device = device.unwrap_or(self.model.device);
        self.model.threads = threads.unwrap_or(self.model.threads);
        if let Some(router) = router {
            self.model.router = router;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(variables: &[(&str, &str)]) -> Result<Config, ConfigError> {
        let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Config::load(None, variables, &Overrides::default())
    }

    fn with_file(text: &str) -> Result<Config, ConfigError> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        Config::load(Some(file.path()), [], &Overrides::default())
    }

    #[test]
    fn without_any_setting_the_defaults_hold() {
        assert_eq!(load(&[("PATH", "/bin")]).unwrap(), Config::default());
    }

    #[test]
    fn later_layers_win() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "[server]\nport = 1\nmax_batch_emails = 2\n[routing.policy]\nthreshold = 1\n")
            .unwrap();
        let variables = [("POSTROOM_SERVER_PORT".to_owned(), "3".to_owned())];
        let by_file = Config::load(Some(file.path()), [], &Overrides::default()).unwrap();
        assert_eq!((by_file.server.port, by_file.server.max_batch_emails), (1, 2));
        assert_eq!(by_file.routing.policy.threshold, Some(1.0));
        let by_variable = Config::load(Some(file.path()), variables.clone(), &Overrides::default()).unwrap();
        assert_eq!((by_variable.server.port, by_variable.server.max_batch_emails), (3, 2));
        let overrides = Overrides { port: Some(4), ..Overrides::default() };
        assert_eq!(Config::load(Some(file.path()), variables, &overrides).unwrap().server.port, 4);
        let named = [("POSTROOM_CONFIG".to_owned(), file.path().display().to_string())];
        assert_eq!(Config::load(None, named, &Overrides::default()).unwrap(), by_file);
    }

    #[test]
    fn variables_reach_every_kind_of_setting() {
        let config = load(&[
            ("POSTROOM_SERVER_HOST", "::"),
            ("POSTROOM_MODEL_DEVICE", "cuda:1"),
            ("POSTROOM_MODEL_ROUTER", "/srv/router"),
            ("POSTROOM_ROUTING_POLICY_THRESHOLD", "0.7"),
            ("POSTROOM_ROUTING_POLICY_AUTOMATIC_MAIL", "route"),
            ("POSTROOM_ROUTING_EMAIL_KEEP_QUOTES", "true"),
        ])
        .unwrap();
        assert!(config.server.host.is_ipv6());
        assert_eq!(config.model.device, DeviceChoice::Cuda(1));
        assert_eq!(config.model.router, Path::new("/srv/router"));
        assert_eq!(config.routing.policy.threshold, Some(0.7));
        assert!(config.routing.email.keep_quotes);
    }

    #[test]
    fn trusted_proxies_are_addresses_and_networks() {
        let config = load(&[("POSTROOM_SERVER_TRUSTED_PROXIES", "10.0.0.0/8, 2001:db8::7")]).unwrap();
        let expected = ["10.0.0.0/8", "2001:db8::7/128"];
        assert!(config.server.trusted_proxies.iter().map(ToString::to_string).eq(expected));
        let error = with_file("[server]\ntrusted_proxies = [\"10.0.0.1/8\"]\n").unwrap_err().to_string();
        assert!(error.contains("trusted_proxies") && error.contains("write 10.0.0.0/8"), "{error}");
    }

    #[test]
    fn further_routers_are_named_in_a_list() {
        let config =
            with_file("[routers]\ncanary = \"a\"\n[[routers.list]]\nname = \"a\"\npath = \"/srv/a\"\n").unwrap();
        assert_eq!((config.routers.list[0].name.as_str(), config.routers.canary.as_deref()), ("a", Some("a")));
        let error = with_file("[[routers.list]]\nname = \"a\"\npaht = \"/srv/a\"\n").unwrap_err().to_string();
        assert!(error.contains("paht"), "{error}");
    }

    #[test]
    fn an_unknown_key_is_refused_by_name_with_the_valid_ones() {
        let error = with_file("[server]\nprot = 1\n").unwrap_err().to_string();
        assert!(error.contains("`server.prot`") && error.contains("did you mean `port`"), "{error}");
        assert!(error.contains("max_body_bytes"), "{error}");
        let error = with_file("[sever]\nport = 1\n").unwrap_err().to_string();
        assert!(error.contains("`sever`") && error.contains("did you mean `server`"), "{error}");
    }

    #[test]
    fn an_unknown_variable_is_refused_with_the_nearest_one() {
        let error = load(&[("POSTROOM_SERVER_PROT", "1")]).unwrap_err().to_string();
        assert!(error.contains("POSTROOM_SERVER_PROT") && error.contains("POSTROOM_SERVER_PORT"), "{error}");
    }

    #[test]
    fn a_wrong_type_says_key_value_and_what_is_expected() {
        let error = with_file("[server]\nport = \"http\"\n").unwrap_err().to_string();
        for part in ["`server.port`", "\"http\"", "integer"] {
            assert!(error.contains(part), "{error}");
        }
        let error = load(&[("POSTROOM_ROUTING_EMAIL_KEEP_QUOTES", "yes")]).unwrap_err().to_string();
        assert!(error.contains("POSTROOM_ROUTING_EMAIL_KEEP_QUOTES") && error.contains("true or false"), "{error}");
        let error = with_file("server = 5\n").unwrap_err().to_string();
        assert!(error.contains("`server`") && error.contains("section"), "{error}");
    }

    #[test]
    fn values_out_of_range_are_refused() {
        for (variable, value) in [
            ("POSTROOM_SERVER_PORT", "65536"),
            ("POSTROOM_SERVER_MAX_BODY_BYTES", "0"),
            ("POSTROOM_SERVER_REQUEST_TIMEOUT_MS", "9223372036854775807"),
            ("POSTROOM_ROUTING_POLICY_THRESHOLD", "1.5"),
            ("POSTROOM_ROUTING_POLICY_THRESHOLD", "nan"),
            ("POSTROOM_ROUTING_POLICY_AUTOMATIC_MAIL", "drop"),
            ("POSTROOM_MODEL_DEVICE", "gpu"),
            ("POSTROOM_MODEL_THREADS", "-1"),
            ("POSTROOM_ROUTING_EXPLAIN_MAX_RUNNING", "0"),
            ("POSTROOM_ROUTING_EXPLAIN_MAX_BATCH_TOKENS", "0"),
            ("POSTROOM_ROUTING_EXPLAIN_MAX_TOKENS", "0"),
            ("POSTROOM_ROUTING_EXPLAIN_MAX_SENTENCES", "0"),
            ("POSTROOM_ROUTING_EXPLAIN_MAX_WORDS", "0"),
            ("POSTROOM_TELEMETRY_LOG", "postroom=loud"),
            ("POSTROOM_TELEMETRY_OTLP_ENDPOINT", "collector:4318"),
            ("POSTROOM_TELEMETRY_OTLP_HEADERS", "token"),
            ("POSTROOM_TELEMETRY_OTLP_SAMPLING_RATIO", "2"),
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4317"),
            ("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "soon"),
        ] {
            let error = load(&[(variable, value)]).unwrap_err().to_string();
            assert!(error.contains(variable), "{variable}={value}: {error}");
        }
    }

    #[test]
    fn headers_for_the_collector_are_in_no_error_and_no_output() {
        for text in [
            "[telemetry.otlp]\nheaders = [\"authorization=quetzal\"]\n",
            "[telemetry.otlp]\nheaders = \"quetzal\"\n",
            "[telemetry.otlp]\nheaders = \"authorization=quetzal\n",
            "[telemetry.otlp]\nheaders = quetzal\n",
            "[telemetry]\notlp.headers = \"quetzal\n",
            "[telemetry.otlp]\nheaders = { authorization = \"quetzal\" }\n",
            "[telemetry.otlp]\nendpoint = \"http://quetzal:quetzal@collector\"\n",
            "[telemetry.otlp]\nendpoint = [\"https://user:quetzal@collector/KEY\"]\n",
            "[telemetry]\notlp = \"authorization=quetzal\"\n",
            "[[telemetry.otlp]]\nheaders = \"authorization=quetzal\"\n",
            "[[telemetry]]\n[telemetry.otlp]\nheaders = \"authorization=quetzal\"\n",
        ] {
            let error = with_file(text).unwrap_err();
            let causes = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
            assert!(!format!("{error} {causes} {error:?}").contains("quetzal"), "{error}: {causes}: {error:?}");
        }
        let config = load(&[("OTEL_EXPORTER_OTLP_HEADERS", "authorization=quetzal")]).unwrap();
        let shown = format!("{config:?} {}", toml::to_string(&config).unwrap());
        assert!(!shown.contains("quetzal") && shown.contains("(not shown)"), "{shown}");
    }

    #[test]
    fn a_file_that_is_no_toml_or_not_there_is_named() {
        assert!(with_file("[server\n").unwrap_err().to_string().contains("TOML"));
        let missing = Path::new("/nowhere/postroom.toml");
        let error = Config::load(Some(missing), [], &Overrides::default()).unwrap_err();
        assert!(error.to_string().contains("/nowhere/postroom.toml"));
    }
}
