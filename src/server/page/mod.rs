//! The page at `/`: where does this mail go, and why?
//!
//! Plain HTML, CSS and ES modules, compiled into the binary. The page asks no other host, runs no inline script and writes
//! text as text only: a mail is hostile until proven otherwise, and the policy below holds even where the page errs.

mod read;

use std::io::Write;
use std::sync::LazyLock;

use axum::Router;
use axum::body::Bytes;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest, Sha256};

use super::state::Handle;

/// A file of the page.
struct Asset {
    path: &'static str,
    kind: &'static str,
    body: &'static str,
}

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const SVG: &str = "image/svg+xml";

macro_rules! asset {
    ($path:expr, $kind:expr, $file:literal) => {
        Asset { path: $path, kind: $kind, body: include_str!(concat!("assets/", $file)) }
    };
}

/// Links inside the page are relative, so that it also works behind a proxy that serves it under a path.
const ASSETS: [Asset; 33] = [
    asset!("/", HTML, "index.html"),
    asset!("/explain", HTML, "index.html"),
    asset!("/page/page.css", CSS, "page.css"),
    asset!("/page/views.css", CSS, "views.css"),
    asset!("/page/icon.svg", SVG, "icon.svg"),
    asset!("/page/app.js", SCRIPT, "app.js"),
    asset!("/page/form.js", SCRIPT, "form.js"),
    asset!("/page/tabs.js", SCRIPT, "tabs.js"),
    asset!("/page/decision.js", SCRIPT, "decision.js"),
    asset!("/page/api.js", SCRIPT, "api.js"),
    asset!("/page/dom.js", SCRIPT, "dom.js"),
    asset!("/page/text.js", SCRIPT, "text.js"),
    asset!("/page/words.js", SCRIPT, "words.js"),
    asset!("/page/mailview.js", SCRIPT, "mailview.js"),
    asset!("/page/routers.js", SCRIPT, "routers.js"),
    asset!("/page/why.js", SCRIPT, "why.js"),
    asset!("/page/strikes.js", SCRIPT, "strikes.js"),
    asset!("/page/evidence.js", SCRIPT, "evidence.js"),
    asset!("/page/facts.js", SCRIPT, "facts.js"),
    asset!("/page/inside.js", SCRIPT, "inside.js"),
    asset!("/page/choices.js", SCRIPT, "choices.js"),
    asset!("/page/mapcard.js", SCRIPT, "mapcard.js"),
    asset!("/page/heatmap.js", SCRIPT, "heatmap.js"),
    asset!("/page/paint.js", SCRIPT, "paint.js"),
    asset!("/page/heads.js", SCRIPT, "heads.js"),
    asset!("/page/lit.js", SCRIPT, "lit.js"),
    asset!("/page/maps.js", SCRIPT, "maps.js"),
    asset!("/page/methods.js", SCRIPT, "methods.js"),
    asset!("/page/save.js", SCRIPT, "save.js"),
    asset!("/page/compare.js", SCRIPT, "compare.js"),
    asset!("/page/changes.js", SCRIPT, "changes.js"),
    asset!("/page/contrast.js", SCRIPT, "contrast.js"),
    asset!("/page/paired.js", SCRIPT, "paired.js"),
];

/// `Content-Security-Policy` and its companions.
const PROTECTION: [(HeaderName, HeaderValue); 5] = [
    (
        header::CONTENT_SECURITY_POLICY,
        HeaderValue::from_static(
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; connect-src 'self'; \
             base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        ),
    ),
    (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
    (HeaderName::from_static("cross-origin-opener-policy"), HeaderValue::from_static("same-origin")),
    (HeaderName::from_static("cross-origin-resource-policy"), HeaderValue::from_static("same-origin")),
];

/// The page's files, and the one endpoint that it needs beside those for programs.
pub(super) fn routes() -> Router<Handle> {
    let files = ASSETS.iter().zip(PACKED.iter()).fold(Router::new(), |router, (asset, packed)| {
        router.route(asset.path, get(move |headers: HeaderMap| std::future::ready(answer(asset, packed, &headers))))
    });
    files.route("/v1/read", post(read::read))
}

/// The page's endpoints, as a problem document lists them.
pub(super) const ENDPOINTS: [&str; 3] = ["GET /", "GET /explain", "POST /v1/read"];

/// What is made of an asset once: its tag, of its content and weak since it stands for both forms, and the gzip form.
struct Packed {
    etag: String,
    gzip: Bytes,
}

static PACKED: LazyLock<Vec<Packed>> = LazyLock::new(|| ASSETS.iter().map(Packed::of).collect());

impl Packed {
    fn of(asset: &Asset) -> Self {
        let digest = Sha256::digest(asset.body.as_bytes());
        let hex: String = digest.iter().take(12).map(|byte| format!("{byte:02x}")).collect();
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        // Writing to memory does not fail; were it to, the empty form is never sent.
        let gzip = encoder.write_all(asset.body.as_bytes()).and_then(|()| encoder.finish()).unwrap_or_default();
        Self { etag: format!("W/\"{hex}\""), gzip: gzip.into() }
    }
}

/// A browser asks again each time and gets the file only when a new binary brought a new one.
fn answer(asset: &'static Asset, packed: &'static Packed, asked: &HeaderMap) -> Response {
    let mut response =
        if lists(asked, &header::IF_NONE_MATCH, |tag| packed.etag.ends_with(tag.trim_start_matches("W/"))) {
            StatusCode::NOT_MODIFIED.into_response()
        } else if !packed.gzip.is_empty() && lists(asked, &header::ACCEPT_ENCODING, |coding| coding == "gzip") {
            ([(header::CONTENT_ENCODING, "gzip")], packed.gzip.clone()).into_response()
        } else {
            asset.body.into_response()
        };
    let headers = response.headers_mut();
    headers.extend(PROTECTION);
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(asset.kind));
    if let Ok(etag) = HeaderValue::from_str(&packed.etag) {
        headers.insert(header::ETAG, etag);
    }
    response
}

/// Whether a header with a list has an element like this. One with a quality of its own is taken as not listed: at worst a
/// file is sent plain.
fn lists(asked: &HeaderMap, name: &HeaderName, wanted: impl Fn(&str) -> bool) -> bool {
    let values = asked.get_all(name).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|list| list.split(',')).any(|element| wanted(element.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The page is looked at over slow lines too, and is read by people who mend it.
    #[test]
    fn the_whole_page_is_small_on_the_wire() {
        let sent: usize = PACKED.iter().skip(1).map(|packed| packed.gzip.len()).sum();
        assert!((1..=60 * 1024).contains(&sent), "{sent} bytes");
        let read: usize = ASSETS.iter().skip(1).map(|asset| asset.body.len()).sum();
        assert!(read <= 160 * 1024, "{read} bytes");
    }

    #[test]
    fn no_asset_names_another_host_or_writes_markup() {
        for asset in &ASSETS {
            for forbidden in
                ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "https:", "//cdn"]
            {
                assert!(!asset.body.contains(forbidden), "{} has {forbidden}", asset.path);
            }
            // The name of the SVG language is an address that nobody asks.
            let others = asset.body.replace("http://www.w3.org/2000/svg", "");
            assert!(!others.contains("http:"), "{} names a host", asset.path);
        }
    }

    #[test]
    fn every_file_that_the_page_asks_for_is_served() {
        for asset in &ASSETS {
            for quoted in
                asset.body.split(['"', '\'']).filter(|text| text.starts_with("./") || text.starts_with("page/"))
            {
                let path = format!("/page/{}", quoted.trim_start_matches("./").trim_start_matches("page/"));
                assert!(ASSETS.iter().any(|other| other.path == path), "{} asks for {quoted}", asset.path);
            }
        }
    }
}
