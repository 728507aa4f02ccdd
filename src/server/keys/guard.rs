//! The door: who shows no key, an unknown one, or one without the scope, is told so before anything is read.

use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::scope::Scope;
use crate::server::metrics::KeyRefusal;
use crate::server::problem::Problem;
use crate::server::route::wants_brief;
use crate::server::state::Handle;

/// The name of the key that a request showed; an extension of the request.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(in crate::server) struct KeyName(pub(in crate::server) String);

const API_KEY: HeaderName = HeaderName::from_static("x-api-key");

/// Lets a request through where no keys are set, where its route needs none, or where its key has the route's scope.
pub(in crate::server) async fn guard(State(server): State<Handle>, mut request: Request, next: Next) -> Response {
    let route = request.extensions().get::<MatchedPath>().map(MatchedPath::as_str);
    let Some((keys, scope)) = server.keys().zip(Scope::of(request.method(), route)) else {
        return next.run(request).await;
    };
    // A few words of why cost what an explanation costs. A query that cannot be read is refused by the endpoint.
    let explains = route.is_some_and(|route| route.ends_with("/route")) && wants_brief(request.uri()).unwrap_or(false);
    let needed = [Some(scope), explains.then_some(Scope::Explain)];
    let refusal = match shown(request.headers()) {
        None => (KeyRefusal::Missing, unauthorised("key_missing", "this service wants an API key")),
        Some(presented) => match keys.find(presented) {
            None => (KeyRefusal::Unknown, unauthorised("key_unknown", "the API key is not known here")),
            Some(key) => match needed.into_iter().flatten().find(|&scope| !key.scopes.has(scope)) {
                Some(scope) => (KeyRefusal::Scope, out_of_scope(scope)),
                None => {
                    let name = KeyName(key.name.clone());
                    request.extensions_mut().insert(name);
                    return next.run(request).await;
                }
            },
        },
    };
    let (why, response) = refusal;
    server.metrics().http.key_refused(why);
    response
}

/// `Authorization: Bearer KEY`, or `X-API-Key: KEY`.
fn shown(headers: &HeaderMap) -> Option<&[u8]> {
    let bearer = headers.get(header::AUTHORIZATION).map(HeaderValue::as_bytes).and_then(|value| {
        let (scheme, key) = value.split_at_checked(7)?;
        scheme.eq_ignore_ascii_case(b"bearer ").then(|| key.trim_ascii())
    });
    bearer.or_else(|| headers.get(API_KEY).map(HeaderValue::as_bytes))
}

fn unauthorised(code: &'static str, detail: &'static str) -> Response {
    let mut response = Problem::new(StatusCode::UNAUTHORIZED, code, detail)
        .field("authorization")
        .remedy("Send `Authorization: Bearer KEY` or `X-API-Key: KEY`; whoever runs the service makes keys with `postroom keys new NAME`.")
        .into_response();
    response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    response
}

fn out_of_scope(scope: Scope) -> Response {
    Problem::new(StatusCode::FORBIDDEN, "key_scope", "the API key is not for what is asked for")
        .field("authorization")
        .valid([scope])
        .remedy(format!("Use a key with the scope `{scope}`."))
        .into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_found_in_either_header() {
        let headers = |name: &'static str, value: &'static str| {
            HeaderMap::from_iter([(HeaderName::from_static(name), HeaderValue::from_static(value))])
        };
        assert_eq!(shown(&headers("authorization", "Bearer abc ")), Some(&b"abc"[..]));
        assert_eq!(shown(&headers("authorization", "bearer abc")), Some(&b"abc"[..]));
        assert_eq!(shown(&headers("x-api-key", "abc")), Some(&b"abc"[..]));
        assert_eq!(shown(&headers("authorization", "Basic abc")), None);
        assert_eq!(shown(&headers("authorization", "Bear")), None);
    }
}
