//! What a key is good for.

use std::fmt;
use std::str::FromStr;

use axum::http::Method;

/// One kind of request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scope {
    /// Decisions, and what is needed to read them: queues and models.
    Route,
    /// Maps and evidence, which cost far more.
    Explain,
    /// Metrics and whatever changes the running service.
    Admin,
}

impl Scope {
    /// All scopes.
    pub const ALL: [Self; 3] = [Self::Route, Self::Explain, Self::Admin];

    /// Its name in key files, arguments and answers.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Route => "route",
            Self::Explain => "explain",
            Self::Admin => "admin",
        }
    }

    /// What a request to this route needs; `None` for probes, for pages and descriptions without anybody's mail, and for
    /// paths that do not exist. A route that is not named here needs `route`: a new one is never open by accident.
    pub(in crate::server) fn of(method: &Method, route: Option<&str>) -> Option<Self> {
        let route = route?;
        let reads = matches!(*method, Method::GET | Method::HEAD);
        match route {
            "/livez" | "/readyz" | "/v2/health/live" | "/v2/health/ready" => None,
            "/" | "/explain" | "/docs" | "/openapi.json" if reads => None,
            _ if reads && ["/page/", "/docs/"].iter().any(|folder| route.starts_with(folder)) => None,
            "/metrics" => Some(Self::Admin),
            _ if route.starts_with("/admin/") => Some(Self::Admin),
            // With and without the name of a router before it.
            _ if ["/attention", "/explain", "/heads", "/compare"].iter().any(|end| route.ends_with(end)) => {
                Some(Self::Explain)
            }
            _ => Some(Self::Route),
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl FromStr for Scope {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|scope| scope.name() == text);
        known.ok_or_else(|| format!("`{text}` is none of route, explain, admin"))
    }
}

/// A set of scopes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Scopes([bool; Scope::ALL.len()]);

impl Scopes {
    /// Whether the set has a scope.
    #[must_use]
    pub fn has(self, scope: Scope) -> bool {
        self.0[scope as usize]
    }

    fn iter(self) -> impl Iterator<Item = Scope> {
        Scope::ALL.into_iter().filter(move |&scope| self.has(scope))
    }
}

impl FromIterator<Scope> for Scopes {
    fn from_iter<I: IntoIterator<Item = Scope>>(scopes: I) -> Self {
        let mut set = Self::default();
        scopes.into_iter().for_each(|scope| set.0[scope as usize] = true);
        set
    }
}

impl fmt::Display for Scopes {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.iter().map(Scope::name).collect();
        formatter.write_str(&names.join(","))
    }
}

impl FromStr for Scopes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.split(',').map(str::parse::<Scope>).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_route_that_nobody_thought_of_is_not_open() {
        let of = |method, route| Scope::of(&method, Some(route));
        assert_eq!(of(Method::GET, "/v3/anything"), Some(Scope::Route));
        assert_eq!(of(Method::POST, "/v1/attention"), Some(Scope::Explain));
        assert_eq!(of(Method::POST, "/v1/routers/{router}/explain"), Some(Scope::Explain));
        assert_eq!(of(Method::GET, "/metrics"), Some(Scope::Admin));
        assert_eq!(of(Method::POST, "/admin/reload"), Some(Scope::Admin));
        assert_eq!((of(Method::GET, "/livez"), Scope::of(&Method::GET, None)), (None, None));
    }

    #[test]
    fn a_page_is_open_and_mail_sent_to_its_address_is_not() {
        assert_eq!(Scope::of(&Method::GET, Some("/")), None);
        assert_eq!(Scope::of(&Method::POST, Some("/")), Some(Scope::Route));
        assert_eq!(Scope::of(&Method::GET, Some("/page/app.js")), None);
        assert_eq!(Scope::of(&Method::POST, Some("/page/app.js")), Some(Scope::Route));
    }

    #[test]
    fn scopes_are_read_as_they_are_written() {
        let scopes: Scopes = "explain,route".parse().unwrap();
        assert_eq!(scopes.to_string(), "route,explain");
        assert!(scopes.has(Scope::Route) && !scopes.has(Scope::Admin));
        assert!("route,root".parse::<Scopes>().is_err() && "".parse::<Scopes>().is_err());
    }
}
