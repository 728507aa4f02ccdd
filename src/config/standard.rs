//! The variables that OpenTelemetry reads everywhere, as settings of ours.
//!
//! <https://opentelemetry.io/docs/specs/otel/protocol/exporter/>. They stand right above the defaults: what is set for this
//! program alone wins over what is set for all. Of two variables the one about traces wins. The protocol is HTTP with
//! protobuf whatever `OTEL_EXPORTER_OTLP_PROTOCOL` says.

use std::collections::BTreeMap;

/// One setting of `[telemetry.otlp]` and the variable that it comes from.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Setting {
    pub variable: &'static str,
    pub key: &'static str,
    pub value: String,
}

/// Settings and their variables, the stronger one first.
const VARIABLES: [(&str, [&str; 2]); 6] = [
    ("endpoint", ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"]),
    ("headers", ["OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS"]),
    ("certificate", ["OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE", "OTEL_EXPORTER_OTLP_CERTIFICATE"]),
    ("timeout_ms", ["OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "OTEL_EXPORTER_OTLP_TIMEOUT"]),
    ("service_name", ["OTEL_SERVICE_NAME", ""]),
    ("resource_attributes", ["OTEL_RESOURCE_ATTRIBUTES", ""]),
];

/// The settings that the variables stand for: none where they switch traces off. An empty variable counts as unset, as the
/// standard asks.
pub(super) fn settings(variables: &BTreeMap<String, String>) -> Vec<Setting> {
    let of = |name: &str| variables.get(name).map(|value| value.trim()).filter(|value| !value.is_empty());
    let off = of("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true"))
        || of("OTEL_TRACES_EXPORTER").is_some_and(|value| value.eq_ignore_ascii_case("none"));
    if off {
        return Vec::new();
    }
    let named = VARIABLES.iter().filter_map(|(key, names)| {
        let (variable, value) = names.iter().find_map(|name| Some((*name, of(name)?)))?;
        Some(Setting { variable, key, value: value.to_owned() })
    });
    let mut settings: Vec<Setting> = named.collect();
    settings.extend(service_name(of("OTEL_SERVICE_NAME"), of("OTEL_RESOURCE_ATTRIBUTES")));
    settings.extend(sampling(of("OTEL_TRACES_SAMPLER"), of("OTEL_TRACES_SAMPLER_ARG")));
    settings
}

/// The name may stand among the attributes, where no variable of its own says it.
fn service_name(named: Option<&str>, attributes: Option<&str>) -> Option<Setting> {
    let name = attributes?.split(',').find_map(|part| part.trim().strip_prefix("service.name="))?;
    named.is_none().then(|| Setting {
        variable: "OTEL_RESOURCE_ATTRIBUTES",
        key: "service_name",
        value: name.trim().to_owned(),
    })
}

/// The samplers that heed the caller; this program knows no others.
fn sampling(sampler: Option<&str>, argument: Option<&str>) -> Option<Setting> {
    let (variable, value) = match sampler? {
        "parentbased_always_on" => ("OTEL_TRACES_SAMPLER", "1"),
        "parentbased_always_off" => ("OTEL_TRACES_SAMPLER", "0"),
        "parentbased_traceidratio" => ("OTEL_TRACES_SAMPLER_ARG", argument.unwrap_or("1")),
        _ => return None,
    };
    Some(Setting { variable, key: "sampling_ratio", value: value.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::super::{Config, Overrides};
    use crate::otlp::{Headers, OtlpConfig};

    fn otlp(variables: &[(&str, &str)]) -> OtlpConfig {
        let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Config::load(None, variables, &Overrides::default()).unwrap().telemetry.otlp
    }

    #[test]
    fn the_standard_variables_are_settings() {
        let config = otlp(&[
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://all:4318"),
            ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://traces:4318/v1/traces"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "a=b"),
            ("OTEL_EXPORTER_OTLP_CERTIFICATE", "/etc/ca.crt"),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "2000"),
            ("OTEL_RESOURCE_ATTRIBUTES", "service.name=desk,service.instance.id=a"),
            ("OTEL_TRACES_SAMPLER", "parentbased_traceidratio"),
            ("OTEL_TRACES_SAMPLER_ARG", "0.25"),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
            ("OTEL_SERVICE_NAME", ""),
        ]);
        let expected = OtlpConfig {
            endpoint: "http://traces:4318/v1/traces".to_owned(),
            headers: Headers::new("a=b"),
            certificate: Some("/etc/ca.crt".into()),
            timeout_ms: 2000,
            sampling_ratio: 0.25,
            service_name: "desk".to_owned(),
            resource_attributes: "service.name=desk,service.instance.id=a".to_owned(),
        };
        assert_eq!(config, expected);
    }

    #[test]
    fn our_own_settings_win_and_the_standard_switches_off() {
        let collector = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://all:4318");
        assert_eq!(otlp(&[collector]).endpoint, "http://all:4318");
        let ours = ("POSTROOM_TELEMETRY_OTLP_ENDPOINT", "http://ours:4318");
        assert_eq!(otlp(&[collector, ours]).endpoint, "http://ours:4318");
        assert_eq!(otlp(&[collector, ("POSTROOM_TELEMETRY_OTLP_ENDPOINT", "")]).endpoint, "");
        assert_eq!(otlp(&[collector, ("OTEL_SDK_DISABLED", "true")]), OtlpConfig::default());
        assert_eq!(otlp(&[collector, ("OTEL_TRACES_EXPORTER", "none")]), OtlpConfig::default());
        assert_eq!(otlp(&[collector, ("OTEL_SDK_DISABLED", "true"), ours]).endpoint, "http://ours:4318");
        assert_eq!(otlp(&[("OTEL_SERVICE_NAME", "desk")]).service_name, "desk");
    }
}
