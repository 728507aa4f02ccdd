//! The address in a `From` field, whoever wrote it.

use std::sync::LazyLock;

use crate::email::pattern::Pattern;

static ADDRESS: LazyLock<Pattern> = LazyLock::new(|| Pattern::new(r"[\w.!#$%&'*+/=?^`{|}~-]+@[\w-]+(?:\.[\w-]+)*"));

/// Finds the address in `Name <a@b>`; one in brackets wins because a display name may hold another. Also reads
/// `a@b (Name)`, `Name [mailto:a@b]` or a bare address.
pub(super) fn find(value: &str) -> Option<&str> {
    let in_brackets = value.find('<').and_then(|at| ADDRESS.find_from(value, at));
    let found = in_brackets.or_else(|| ADDRESS.find(value))?;
    Some(value[found].trim_matches(|c: char| matches!(c, '\'' | '.' | '*' | '=')))
}

/// The part before the `@`, in lower case.
pub(super) fn local_part(address: &str) -> String {
    address.split('@').next().unwrap_or_default().to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_is_found_in_each_form() {
        for value in [
            "Ann <ann@x.example>",
            "\"bob@y.example\" <ann@x.example>",
            "ann@x.example (Ann)",
            "Ann [mailto:ann@x.example]",
        ] {
            assert_eq!(find(value).map(|a| a.trim_start_matches("mailto:")), Some("ann@x.example"), "{value}");
        }
        assert_eq!(find("Ann"), None);
    }
}
