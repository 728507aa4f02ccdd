//! Lists as the standard variables write them: `key=value,key=value`, the values percent-encoded.

use percent_encoding::percent_decode_str;

/// The pairs in their order; `None` where a part has no key, no `=` or is not UTF-8.
pub(super) fn parse(text: &str) -> Option<Vec<(String, String)>> {
    text.split(',').map(str::trim).filter(|part| !part.is_empty()).map(pair).collect()
}

fn pair(part: &str) -> Option<(String, String)> {
    let (key, value) = part.split_once('=')?;
    let value = percent_decode_str(value.trim()).decode_utf8().ok()?;
    let key = key.trim();
    (!key.is_empty()).then(|| (key.to_owned(), value.into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_decoded_and_may_hold_an_equals_sign() {
        let pairs = parse(" deployment.environment.name=prod , authorization=Basic%20YTpi==,").unwrap();
        let pairs: Vec<_> = pairs.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        assert_eq!(pairs, [("deployment.environment.name", "prod"), ("authorization", "Basic YTpi==")]);
        assert_eq!(parse(""), Some(Vec::new()));
        for bad in ["alone", "=value", "a=b,c", "a=%FF"] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }
}
