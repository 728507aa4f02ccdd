//! Which layers, heads and rows a caller asks for: `all`, `last`, `cls`, or lists such as `0,2-4`.

/// Why a selection is refused; the text lists what is valid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SelectError {
    /// Not a keyword and not a list of numbers and ranges.
    #[error("{what}=`{text}` is none of {keywords}, nor a list such as 0,2-4")]
    Syntax {
        /// `layers`, `heads` or `rows`.
        what: &'static str,
        /// What was given.
        text: String,
        /// The words that are understood.
        keywords: &'static str,
    },
    /// A number that is not there.
    #[error("{what} holds {index}, which does not exist: valid are 0 to {last}")]
    Unknown {
        /// `layers`, `heads` or `rows`.
        what: &'static str,
        /// The number.
        index: usize,
        /// The largest valid one.
        last: usize,
    },
}

/// Layers to show.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Layers {
    /// Every layer.
    All,
    /// The last one.
    #[default]
    Last,
    /// These, in this order.
    List(Vec<usize>),
}

impl Layers {
    /// Reads `all`, `last` or a list.
    ///
    /// # Errors
    /// [`SelectError::Syntax`].
    pub fn parse(text: &str) -> Result<Self, SelectError> {
        match text.trim() {
            "all" => Ok(Self::All),
            "last" => Ok(Self::Last),
            list => index_list("layers", list, "all, last").map(Self::List),
        }
    }

    /// The layers of an encoder with `n_layers`.
    ///
    /// # Errors
    /// [`SelectError::Unknown`].
    pub fn resolve(&self, n_layers: usize) -> Result<Vec<usize>, SelectError> {
        match self {
            Self::All => Ok((0..n_layers).collect()),
            Self::Last => Ok(vec![n_layers.saturating_sub(1)]),
            Self::List(list) => within("layers", list, n_layers),
        }
    }
}

/// Heads to show.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Heads {
    /// Every head.
    #[default]
    All,
    /// These, in this order.
    List(Vec<usize>),
}

impl Heads {
    /// Reads `all` or a list.
    ///
    /// # Errors
    /// [`SelectError::Syntax`].
    pub fn parse(text: &str) -> Result<Self, SelectError> {
        match text.trim() {
            "all" => Ok(Self::All),
            list => index_list("heads", list, "all").map(Self::List),
        }
    }

    /// The heads of a layer with `n_heads`.
    ///
    /// # Errors
    /// [`SelectError::Unknown`].
    pub fn resolve(&self, n_heads: usize) -> Result<Vec<usize>, SelectError> {
        match self {
            Self::All => Ok((0..n_heads).collect()),
            Self::List(list) => within("heads", list, n_heads),
        }
    }
}

/// Rows (queries) to show, as numbers of units.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Rows {
    /// Every unit of the window.
    All,
    /// The `[CLS]` row.
    #[default]
    Cls,
    /// These units, in this order.
    List(Vec<usize>),
}

impl Rows {
    /// Reads `all`, `cls` or a list.
    ///
    /// # Errors
    /// [`SelectError::Syntax`].
    pub fn parse(text: &str) -> Result<Self, SelectError> {
        match text.trim() {
            "all" => Ok(Self::All),
            "cls" => Ok(Self::Cls),
            list => index_list("rows", list, "all, cls").map(Self::List),
        }
    }

    /// The rows of a window with `n_units`.
    ///
    /// # Errors
    /// [`SelectError::Unknown`].
    pub fn resolve(&self, n_units: usize) -> Result<Vec<usize>, SelectError> {
        match self {
            Self::All => Ok((0..n_units).collect()),
            Self::Cls => Ok(vec![0]),
            Self::List(list) => within("rows", list, n_units),
        }
    }

    /// The rows that a window with `n_units` has; none is missed.
    #[must_use]
    pub fn within(&self, n_units: usize) -> Vec<usize> {
        match self {
            Self::All => (0..n_units).collect(),
            Self::Cls => vec![0],
            Self::List(list) => list.iter().copied().filter(|&row| row < n_units).collect(),
        }
    }
}

/// More indices than this in one list are refused: no model has so many layers or heads, no window so many words.
const MAX_INDICES: usize = 4096;

/// Numbers and ranges, in the order given, each once.
fn index_list(what: &'static str, text: &str, keywords: &'static str) -> Result<Vec<usize>, SelectError> {
    let syntax = || SelectError::Syntax { what, text: text.chars().take(80).collect(), keywords };
    let mut seen = std::collections::HashSet::new();
    let mut indices = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let first: usize = first.trim().parse().map_err(|_| syntax())?;
        let last: usize = last.trim().parse().map_err(|_| syntax())?;
        if first > last || last - first >= MAX_INDICES {
            return Err(syntax());
        }
        indices.extend((first..=last).filter(|&index| seen.insert(index)));
        if indices.len() > MAX_INDICES {
            return Err(syntax());
        }
    }
    Ok(indices)
}

fn within(what: &'static str, list: &[usize], count: usize) -> Result<Vec<usize>, SelectError> {
    match list.iter().find(|&&index| index >= count) {
        Some(&index) => Err(SelectError::Unknown { what, index, last: count.saturating_sub(1) }),
        None => Ok(list.to_vec()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_keep_their_order_and_drop_repeats() {
        assert_eq!(Layers::parse("4, 0-2,1"), Ok(Layers::List(vec![4, 0, 1, 2])));
    }

    #[test]
    fn what_is_no_list_is_refused_with_the_valid_words() {
        for text in ["", "first", "3-1", "-1", "0-99999999999", "1,,2"] {
            let error = Rows::parse(text).unwrap_err();
            assert!(error.to_string().contains("all, cls"), "{error}");
        }
    }

    #[test]
    fn an_unknown_layer_names_the_valid_ones() {
        let error = Layers::parse("6").unwrap().resolve(6).unwrap_err();
        assert_eq!(error.to_string(), "layers holds 6, which does not exist: valid are 0 to 5");
    }
}
