//! The spans of a request: one for the request itself, below it one for each mail decided, below that its stages.
//!
//! Attributes are names of ours, numbers, and names from the router's files. Nothing that a caller sent is among them but its
//! place in its own trace: no path, no query, no header, no id, no word of a mail. That is why `url.path`, `user_agent` and
//! their like are missing here though the conventions know them.
//!
//! <https://opentelemetry.io/docs/specs/semconv/http/http-spans/#http-server-span>

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use axum::http::{HeaderMap, Method, StatusCode};
use opentelemetry::trace::{Span as _, SpanContext, SpanKind, Status, TraceContextExt, TraceState, Tracer as _};
use opentelemetry::{Array, Context, KeyValue, SpanId, TraceFlags, TraceId, Value};
use opentelemetry_sdk::trace::{SdkTracer, Span};

use super::metrics::method_name;
use super::trace;
use crate::otlp::Traces;
use crate::routing::{Decision, Timing};

tokio::task_local! {
    /// The request that this task answers, where its trace is exported.
    static CURRENT: Option<Arc<Request>>;
}

/// What the spans below a request's hang on.
struct Request {
    tracer: SdkTracer,
    context: Context,
}

/// The end of a connection that is ours; a request carries it as an extension where traces are exported.
#[derive(Debug, Clone, Copy)]
pub(super) struct Local {
    pub(super) address: Option<SocketAddr>,
    pub(super) tls: bool,
}

/// The code of a problem; an answer carries it as an extension.
#[derive(Debug, Clone, Copy)]
pub(super) struct ProblemCode(pub(super) &'static str);

/// The span of one request, from its head to its answer.
pub(super) struct RequestSpan {
    span: Span,
    request: Option<Arc<Request>>,
}

impl RequestSpan {
    /// Begins it, below the caller's span where there is one. `route` is the template, `None` where no endpoint matched.
    pub(super) fn begin(traces: &Traces, method: &Method, route: Option<&str>, headers: &HeaderMap) -> Self {
        let method = method_name(method);
        let (name, method) = if method == "other" { ("HTTP", "_OTHER") } else { (method, method) };
        let name = route.map_or_else(|| name.to_owned(), |route| format!("{name} {route}"));
        let mut attributes = vec![KeyValue::new("http.request.method", method)];
        attributes.extend(route.map(|route| KeyValue::new("http.route", route.to_owned())));
        let tracer = traces.tracer();
        let builder = tracer.span_builder(name).with_kind(SpanKind::Server).with_attributes(attributes);
        let span = builder.start_with_context(tracer, &context_of(headers));
        let request = span.is_recording().then(|| Arc::new(Request { tracer: tracer.clone(), context: below(&span) }));
        Self { span, request }
    }

    /// Says where the request came in.
    pub(super) fn came_in_at(&mut self, local: Option<&Local>) {
        let Some(Local { address, tls }) = local else { return };
        self.span.set_attribute(KeyValue::new("url.scheme", if *tls { "https" } else { "http" }));
        if let Some(address) = address {
            self.span.set_attribute(KeyValue::new("server.address", address.ip().to_canonical().to_string()));
            self.span.set_attribute(KeyValue::new("server.port", i64::from(address.port())));
        }
    }

    /// The trace, where it is exported.
    pub(super) fn trace_id(&self) -> Option<TraceId> {
        self.request.as_ref().map(|_| self.span.span_context().trace_id())
    }

    /// The answer, made so that the mails decided for it find this span.
    pub(super) fn around<F: Future>(&self, answer: F) -> impl Future<Output = F::Output> + use<F> {
        CURRENT.scope(self.request.clone(), answer)
    }

    /// Ends it; without a status the client left first.
    pub(super) fn end(&mut self, status: Option<StatusCode>, problem: Option<ProblemCode>) {
        match status {
            Some(status) => {
                self.span.set_attribute(KeyValue::new("http.response.status_code", i64::from(status.as_u16())));
                if status.is_server_error() {
                    let kind = problem.map_or_else(|| status.as_u16().to_string(), |problem| problem.0.to_owned());
                    self.span.set_attribute(KeyValue::new("error.type", kind));
                    self.span.set_status(Status::error(""));
                } else if let Some(problem) = problem {
                    // The client's fault is no error of this span, but says what happened.
                    self.span.set_attribute(KeyValue::new("postroom.problem", problem.0));
                }
            }
            None => self.span.set_attribute(KeyValue::new("error.type", "client_left")),
        }
        self.span.end();
    }
}

/// A future for another task that belongs to the same request.
pub(super) fn carried<F: Future>(work: F) -> impl Future<Output = F::Output> + use<F> {
    CURRENT.scope(CURRENT.try_with(Clone::clone).unwrap_or_default(), work)
}

/// Adds the spans of a mail that has just been decided, where this task answers a request whose trace is exported.
pub(super) fn decided(decision: &Decision) {
    // An error means that nothing is exported.
    let _ = CURRENT.try_with(|request| {
        if let Some(request) = request {
            request.decided(decision, SystemTime::now());
        }
    });
}

impl Request {
    /// Stages are laid out one after the other from the measured durations; what is between two of them is microseconds.
    fn decided(&self, decision: &Decision, end: SystemTime) {
        let Timing { parse, tokenize, queue, model, total } = decision.timing_us;
        let start = end.checked_sub(Duration::from_micros(total)).unwrap_or(end);
        let tracer = &self.tracer;
        let builder = tracer.span_builder("decide").with_start_time(start).with_attributes(attributes(decision));
        let mut mail = builder.start_with_context(tracer, &self.context);
        let inside = below(&mail);
        let asked = decision.confidence.is_some();
        let stages =
            [("parse", parse, true), ("tokenize", tokenize, true), ("queue", queue, asked), ("model", model, asked)];
        let mut from = start;
        for (name, micros, _) in stages.into_iter().filter(|(_, _, took_place)| *took_place) {
            let to = from.checked_add(Duration::from_micros(micros)).map_or(end, |to| to.min(end));
            let builder = tracer.span_builder(name).with_start_time(from);
            builder.start_with_context(tracer, &inside).end_with_timestamp(to);
            from = to;
        }
        mail.end_with_timestamp(end);
    }
}

fn attributes(decision: &Decision) -> Vec<KeyValue> {
    let count = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
    let reasons = decision.reasons.iter().map(|reason| reason.name().into()).collect();
    let mut attributes = vec![
        KeyValue::new("postroom.decision", decision.decision.name()),
        KeyValue::new("postroom.reasons", Value::Array(Array::String(reasons))),
        KeyValue::new("postroom.router", decision.model.router.clone()),
        KeyValue::new("postroom.router.version", decision.model.version.clone()),
        KeyValue::new("postroom.tokens", count(decision.input.tokens_used)),
        KeyValue::new("postroom.windows", count(decision.input.windows)),
        KeyValue::new("postroom.truncated", decision.input.truncated),
    ];
    attributes.extend(decision.queue.as_ref().map(|queue| KeyValue::new("postroom.queue", queue.id.clone())));
    attributes.extend(decision.confidence.map(|confidence| KeyValue::new("postroom.confidence", confidence)));
    attributes
}

/// A context whose spans are children of `span`.
fn below(span: &Span) -> Context {
    Context::new().with_remote_span_context(span.span_context().clone())
}

/// The caller's place in its trace, for the span of its request.
fn context_of(headers: &HeaderMap) -> Context {
    parent_of(headers).map_or_else(Context::new, |parent| Context::new().with_remote_span_context(parent))
}

fn parent_of(headers: &HeaderMap) -> Option<SpanContext> {
    let trace::Parent { trace_id, span_id, flags } = trace::parent(headers)?;
    let (trace_id, span_id) = (TraceId::from_hex(trace_id).ok()?, SpanId::from_hex(span_id).ok()?);
    let flags = TraceFlags::new(u8::from_str_radix(flags, 16).ok()?);
    let state = TraceState::from_key_value(trace::state(headers)).unwrap_or_default();
    Some(SpanContext::new(trace_id, span_id, flags, true, state))
}
