//! Query parameters: each known, each once.

use axum::extract::Query;
use axum::http::Uri;

use super::super::problem::{Problem, excerpt};

/// The parameters as they stand.
pub(in crate::server) fn parameters(uri: &Uri) -> Result<Vec<(String, String)>, Problem> {
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
    match parameters(uri)?.first() {
        Some((name, _)) => Err(unknown(name, std::iter::empty())),
        None => Ok(()),
    }
}
