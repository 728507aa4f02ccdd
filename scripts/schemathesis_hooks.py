"""What schemathesis must know of this service beside its document."""

import uuid

import schemathesis

TEXTS = ("message/rfc822", "application/x-ndjson")


@schemathesis.hook
def before_call(context, case, kwargs):
    """A key stands for one request: generated ones repeat, and a client would not send one twice with another body."""
    headers = case.headers or {}
    key = next((name for name in headers if name.lower() == "idempotency-key"), None)
    if key is not None and case.meta is not None and case.meta.generation.mode.is_positive:
        headers[key] = str(uuid.uuid4())
    # A time that is too short is refused as it should be, and an unknown router too.
    query = case.query or {}
    if str(query.get("timeout_ms", "")).isdigit() and 1 <= int(query["timeout_ms"]) <= 120000:
        query["timeout_ms"] = 60000
    if case.meta is not None and case.meta.generation.mode.is_positive:
        query.pop("router", None)
        for name in ("timeout_ms", "router"):
            if isinstance(case.body, dict):
                case.body.pop(name, None)
    # The name of the router that runs is one of the names that are tried.
    for name in ("name", "router"):
        given = (case.path_parameters or {}).get(name)
        if given is not None and len(str(given)) % 2:
            case.path_parameters[name] = "crumb"


@schemathesis.hook
def filter_case(context, case):
    """Any text is a raw mail or lines of a batch: a value of another type becomes one when it is sent."""
    return case.media_type not in TEXTS or isinstance(case.body, (str, bytes))


@schemathesis.serializer(*TEXTS)
def as_text(context, value):
    """Mail and lines are sent as they are."""
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogatepass")
