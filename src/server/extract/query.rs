//! Query parameters: each known, each once.

use axum::extract::Query;
use axum::http::Uri;

use super::super::deadline::TIMEOUT;
use super::super::problem::{Problem, excerpt};

/// The parameters as they stand, without `timeout_ms`, which every endpoint takes and no handler has to read.
pub(in crate::server) fn parameters(uri: &Uri) -> Result<Vec<(String, String)>, Problem> {
    let mut parameters = all(uri)?;
    parameters.retain(|(name, _)| name != TIMEOUT);
    Ok(parameters)
}

/// The parameter `timeout_ms`.
pub(in crate::server) fn timeout(uri: &Uri) -> Result<Option<String>, Problem> {
    // Most requests have no query at all.
    if uri.query().is_none_or(str::is_empty) {
        return Ok(None);
    }
    let mut found = all(uri)?.into_iter().filter(|(name, _)| name == TIMEOUT);
    match (found.next(), found.next()) {
        (_, Some(_)) => Err(Problem::unprocessable("repeated_parameter", "a parameter was given twice").field(TIMEOUT)),
        (first, None) => Ok(first.map(|(_, value)| value)),
    }
}

fn all(uri: &Uri) -> Result<Vec<(String, String)>, Problem> {
    Query::<Vec<(String, String)>>::try_from_uri(uri)
        .map(|Query(parameters)| parameters)
        .map_err(|_| Problem::bad_request("invalid_query", "the query string cannot be read"))
}

/// The problem of a parameter that an endpoint does not have.
pub(in crate::server) fn unknown<'v>(name: &str, valid: impl Iterator<Item = &'v str>) -> Problem {
    Problem::unprocessable("unknown_parameter", "the query has a parameter that is not known here")
        .field(excerpt(name))
        .valid(valid)
        .remedy("Leave it out or correct its name; nothing that is sent is ignored.")
}

/// For endpoints without parameters.
pub(in crate::server) fn refuse_all(uri: &Uri) -> Result<(), Problem> {
    refuse_all_but(uri, &[])
}

/// For endpoints that take no parameter but these.
pub(in crate::server) fn refuse_all_but(uri: &Uri, known: &[&'static str]) -> Result<(), Problem> {
    match parameters(uri)?.iter().find(|(name, _)| !known.contains(&name.as_str())) {
        Some((name, _)) => Err(unknown(name, known.iter().copied())),
        None => Ok(()),
    }
}
