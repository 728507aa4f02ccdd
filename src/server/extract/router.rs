//! Which router a request is for: named in the path, by `router=` or by the field `router` of a JSON body; otherwise the
//! default.

use std::sync::Arc;

use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::StatusCode;
use axum::http::request::Parts;

use super::super::problem::{Problem, excerpt};
use super::super::state::Handle;
use super::{Object, query};
use crate::routing::{RoutingService, Slot};

/// The name of the parameter, in the query and in a body.
pub(in crate::server) const ROUTER: &str = "router";

/// The router that the head of a request asks for. It is taken once, so that one version makes the whole answer.
pub(in crate::server) struct Asked {
    service: Arc<RoutingService>,
    /// `None` where the head names none.
    name: Option<String>,
}

impl FromRequestParts<Handle> for Asked {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, server: &Handle) -> Result<Self, Problem> {
        let default = server.service()?;
        let by_query = named_by_query(parts)?;
        let by_path = RawPathParams::from_request_parts(parts, server)
            .await
            .map_err(|_| Problem::bad_request("invalid_path", "the path cannot be read"))?
            .iter()
            .find_map(|(name, value)| (name == ROUTER).then(|| value.to_owned()));
        match (by_path, by_query) {
            (Some(_), Some(_)) => Err(repeated()),
            (Some(name), None) => Ok(Self { service: find(server, &name, StatusCode::NOT_FOUND)?, name: Some(name) }),
            (None, Some(name)) => {
                Ok(Self { service: find(server, &name, StatusCode::UNPROCESSABLE_ENTITY)?, name: Some(name) })
            }
            (None, None) => Ok(Self { service: default, name: None }),
        }
    }
}

impl Asked {
    /// The name that the head of the request gives.
    pub(in crate::server) fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// The name that the router was made under, which need not be the one that requests use.
    pub(in crate::server) fn router_name(&self) -> &str {
        &self.service.router().name
    }

    /// The router of a request whose body names none.
    pub(in crate::server) fn service(self) -> Arc<RoutingService> {
        self.service
    }

    /// The router of a request whose body may name one.
    ///
    /// # Errors
    /// The problem of a name that is unknown, or given here and elsewhere.
    pub(in crate::server) fn or_of_body(
        self,
        server: &Handle,
        body: &mut Object,
    ) -> Result<Arc<RoutingService>, Problem> {
        let name = body.take_text(ROUTER)?;
        self.or_named(server, name)
    }

    /// As [`Asked::or_of_body`], with the name already read.
    pub(in crate::server) fn or_named(
        self,
        server: &Handle,
        name: Option<String>,
    ) -> Result<Arc<RoutingService>, Problem> {
        match name {
            None => Ok(self.service),
            Some(_) if self.name.is_some() => Err(repeated()),
            Some(name) => find(server, &name, StatusCode::UNPROCESSABLE_ENTITY),
        }
    }
}

fn named_by_query(parts: &Parts) -> Result<Option<String>, Problem> {
    let mut named = query::parameters(&parts.uri)?.into_iter().filter(|(name, _)| name == ROUTER);
    let name = named.next().map(|(_, value)| value);
    if named.next().is_some() { Err(repeated()) } else { Ok(name) }
}

fn repeated() -> Problem {
    Problem::unprocessable("repeated_parameter", "the router is named twice")
        .field(ROUTER)
        .remedy("Name it once: in the path, in the query or in the body.")
}

/// The router of a name; `status` is that of a name that no router has.
fn find(server: &Handle, name: &str, status: StatusCode) -> Result<Arc<RoutingService>, Problem> {
    let routers = server.routers()?;
    let slot = routers.get(name).ok_or_else(|| {
        Problem::new(status, "unknown_router", "there is no router of this name")
            .field(ROUTER)
            .given(excerpt(name))
            .valid(routers.names())
            .remedy("Name one of those listed under `valid`, or none for the default one, which is listed first.")
    })?;
    live(&slot)
}

/// The router that answers to a name now, or the problem that it is not there yet.
pub(in crate::server) fn live(slot: &Slot) -> Result<Arc<RoutingService>, Problem> {
    slot.live().ok_or_else(|| {
        Problem::unavailable("router_unavailable", "this router could not be loaded", std::time::Duration::from_secs(5))
            .field(ROUTER)
            .given(slot.name())
            .remedy("The log and GET /admin/routers say why; it is loaded as soon as its files are whole.")
    })
}
