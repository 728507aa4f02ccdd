//! What a router said of one labelled mail.

/// A labelled mail with the numbers that every figure is made of.
#[derive(Debug, Clone, PartialEq)]
pub struct JudgedMail {
    /// Id of the mail in its file.
    pub id: String,
    /// Its right queue, an index into the router's queues.
    pub target: usize,
    /// One logit a queue, the sum of all legs.
    pub logits: Vec<f32>,
    /// Logits of the word counts alone, the baseline; `None` where the router counts no words.
    pub baseline: Option<Vec<f32>>,
    /// Tokens of the whole mail.
    pub tokens: usize,
    /// Where in the mail the sentence stands that decides, 0 (first) to 1 (last), where the data says.
    pub decisive_position: Option<f64>,
    /// Subject line; it stands in the HTML report and nowhere else.
    pub subject: String,
}
