use axum::http::HeaderValue;
use proptest::prelude::*;

use super::*;

const PROXIES: [&str; 3] = ["10.0.0.0/8", "192.0.2.7", "2001:db8:f::/48"];

fn trusted() -> Vec<Network> {
    PROXIES.map(|network| network.parse().unwrap()).into()
}

fn asked(peer: &str, headers: &[(&'static str, &str)]) -> String {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        map.append(HeaderName::from_static(name), HeaderValue::from_str(value).unwrap());
    }
    client(&trusted(), peer.parse().unwrap(), &map).to_string()
}

fn x_forwarded_for(peer: &str, list: &str) -> String {
    asked(peer, &[("x-forwarded-for", list)])
}

#[test]
fn a_peer_that_is_no_proxy_of_ours_is_the_client_whatever_it_says() {
    assert_eq!(x_forwarded_for("198.51.100.1", "203.0.113.5"), "198.51.100.1");
    assert_eq!(asked("198.51.100.1", &[("forwarded", "for=203.0.113.5")]), "198.51.100.1");
    let headers = HeaderMap::from_iter([(X_FORWARDED_FOR, HeaderValue::from_static("203.0.113.5"))]);
    assert_eq!(client(&[], "10.0.0.1".parse().unwrap(), &headers).to_string(), "10.0.0.1");
}

#[test]
fn behind_proxies_the_right_most_stranger_is_the_client() {
    assert_eq!(asked("10.0.0.1", &[]), "10.0.0.1");
    assert_eq!(x_forwarded_for("10.0.0.1", "203.0.113.5"), "203.0.113.5");
    // What a client writes itself stands left of what the proxy saw.
    assert_eq!(x_forwarded_for("10.0.0.1", "1.1.1.1, 10.9.9.9, 203.0.113.5"), "203.0.113.5");
    assert_eq!(x_forwarded_for("192.0.2.7", "203.0.113.5, 10.1.2.3,10.0.0.2"), "203.0.113.5");
    // All of them ours: a client within our own network.
    assert_eq!(x_forwarded_for("10.0.0.1", "10.1.2.3, 10.0.0.2"), "10.1.2.3");
    let several = [("x-forwarded-for", "1.1.1.1"), ("x-forwarded-for", "203.0.113.5"), ("x-forwarded-for", "10.0.0.2")];
    assert_eq!(asked("10.0.0.1", &several), "203.0.113.5");
}

#[test]
fn addresses_are_read_in_every_form_that_proxies_write() {
    for (element, client) in [
        ("203.0.113.5:4711", "203.0.113.5"),
        ("2001:db8::7", "2001:db8::7"),
        ("[2001:db8::7]", "2001:db8::7"),
        ("[2001:db8::7]:4711", "2001:db8::7"),
        ("::ffff:203.0.113.5", "203.0.113.5"),
        (" , 203.0.113.5 , ", "203.0.113.5"),
    ] {
        assert_eq!(x_forwarded_for("::ffff:10.0.0.1", element), client, "{element}");
    }
    assert_eq!(x_forwarded_for("2001:db8:f::1", "2001:db8::7, 2001:db8:f:1::2"), "2001:db8::7");
    for (element, client) in [
        ("for=203.0.113.5", "203.0.113.5"),
        ("proto=https;For=\"[2001:db8::7]:4711\";by=10.0.0.1", "2001:db8::7"),
        ("for=1.1.1.1, for=203.0.113.5;proto=http, for=10.2.2.2", "203.0.113.5"),
        // A quote that a client left open takes in nothing that the proxy added.
        ("for=1.1.1.1, for=\"a, for=203.0.113.5", "203.0.113.5"),
    ] {
        assert_eq!(asked("10.0.0.1", &[("forwarded", element)]), client, "{element}");
    }
}

#[test]
fn what_is_no_address_ends_the_reading() {
    for list in
        ["", ",", "unknown", "203.0.113.5, _hidden", "1.1.1.1, 300.1.1.1", "1.1.1.1 2.2.2.2", "fe80::1%eth0", "a@b"]
    {
        assert_eq!(x_forwarded_for("10.0.0.1", list), "10.0.0.1", "{list}");
    }
    assert_eq!(x_forwarded_for("10.0.0.1", "1.1.1.1, unknown, 10.0.0.2"), "10.0.0.2");
    for element in ["203.0.113.5", "by=203.0.113.5", "for=", "for", "for=\"203.0.113.5", "for=unknown"] {
        assert_eq!(asked("10.0.0.1", &[("forwarded", element)]), "10.0.0.1", "{element}");
    }
    let mut headers = HeaderMap::new();
    headers.append(X_FORWARDED_FOR, HeaderValue::from_bytes(b"1.1.1.1, \xff").unwrap());
    assert_eq!(client(&trusted(), "10.0.0.1".parse().unwrap(), &headers).to_string(), "10.0.0.1");
}

#[test]
fn two_headers_that_say_different_things_are_not_believed() {
    let both = |one, other| asked("10.0.0.1", &[("x-forwarded-for", one), ("forwarded", other)]);
    assert_eq!(both("203.0.113.5", "for=203.0.113.5"), "203.0.113.5");
    assert_eq!(both("203.0.113.5", "for=198.51.100.9"), "10.0.0.1");
    assert_eq!(both("203.0.113.5", "nonsense"), "10.0.0.1");
}

#[test]
fn thousands_of_hops_are_read_to_the_first_stranger() {
    let hops = "10.0.0.2, ".repeat(10_000);
    assert_eq!(x_forwarded_for("10.0.0.1", &format!("1.1.1.1, 203.0.113.5, {hops}10.0.0.3")), "203.0.113.5");
}

#[test]
fn networks_are_read_and_written() {
    for (text, written) in
        [("10.0.0.0/8", "10.0.0.0/8"), ("192.0.2.7", "192.0.2.7/32"), ("0.0.0.0/0", "0.0.0.0/0"), ("::1", "::1/128")]
    {
        assert_eq!(text.parse::<Network>().unwrap().to_string(), written);
    }
    let contains =
        |network: &str, address: &str| network.parse::<Network>().unwrap().contains(address.parse().unwrap());
    assert!(contains("10.0.0.0/8", "10.255.255.255") && !contains("10.0.0.0/8", "11.0.0.0"));
    assert!(contains("0.0.0.0/0", "255.1.2.3") && !contains("0.0.0.0/0", "::1") && contains("::/0", "2001:db8::1"));
    assert!(contains("2001:db8::/33", "2001:db8:7fff::1") && !contains("2001:db8::/33", "2001:db8:8000::1"));
    assert!(contains("192.0.2.7/32", "::ffff:192.0.2.7") && !contains("::/96", "10.0.0.1"));
    for (text, reason) in [
        ("proxy.example", "no address"),
        ("10.0.0.0/33", "0 to 32"),
        ("::/129", "0 to 128"),
        ("10.0.0.0/", "0 to 32"),
        ("10.0.0.0/-1", "0 to 32"),
        ("10.0.0.1/8", "write 10.0.0.0/8"),
        ("::ffff:10.0.0.1", "no address"),
        ("", "no address"),
    ] {
        let error = text.parse::<Network>().unwrap_err().to_string();
        assert!(error.contains(reason), "{text}: {error}");
    }
}

proptest! {
    #[test]
    fn no_header_panics_and_none_makes_a_stranger_a_proxy(one in "\\PC{0,80}", other in "[0-9a-f:.,;=\" \\[\\]]{0,80}") {
        let mut headers = HeaderMap::new();
        for text in [&one, &other] {
            if let Ok(value) = HeaderValue::from_bytes(text.as_bytes()) {
                headers.append(X_FORWARDED_FOR, value.clone());
                headers.append(header::FORWARDED, value);
            }
        }
        let stranger: IpAddr = "198.51.100.1".parse().unwrap();
        prop_assert_eq!(client(&trusted(), stranger, &headers), stranger);
        let _ = client(&trusted(), "10.0.0.1".parse().unwrap(), &headers);
    }
}
