//! Kinds of work for the model. While mail waits to be routed, no two pieces of dearer work run in a row.

/// One lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Lane {
    /// Mail to be routed: many in a batch.
    Route,
    /// Attention maps: one mail a batch.
    Maps,
    /// Parts of explanations: one a batch.
    Explain,
}

impl Lane {
    /// All lanes, in the order in which they take turns.
    pub const ALL: [Self; 3] = [Self::Route, Self::Maps, Self::Explain];

    /// Its name in metrics.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Route => "route",
            Self::Maps => "maps",
            Self::Explain => "explain",
        }
    }

    /// Tokens of one batch; 0 makes a batch of one mail.
    pub(super) fn batch_tokens(self, max_batch_tokens: usize) -> usize {
        match self {
            Self::Route => max_batch_tokens,
            Self::Maps | Self::Explain => 0,
        }
    }

    /// Whether it has to wait for a batch of mail to be routed before it gets another turn.
    pub(super) fn is_dear(self) -> bool {
        self != Self::Route
    }
}
