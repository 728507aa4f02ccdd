//! `quantize` in `router.json`: linear layers on bytes, and what they were measured to cost.

use serde::{Deserialize, Serialize};

/// What the linear layers of an encoder are reduced to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum QuantizedType {
    /// Weights and activations of 8 bits.
    Int8,
}

/// A router whose encoder runs on bytes. It does so on CPUs with instructions for it; elsewhere it runs in floats.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Quantized {
    /// What it is reduced to.
    #[serde(rename = "type")]
    pub kind: QuantizedType,
    /// What it does to labelled mail; at least one set.
    pub measured: Vec<QuantizationLoss>,
}

/// The decisions of a router in both precisions, on one set of labelled mail.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QuantizationLoss {
    /// The mail, by file name.
    pub data: String,
    /// How many mails.
    pub mails: usize,
    /// Mails that the router in f32 sends to the right queue, every mail routed.
    pub right_f32: usize,
    /// The same on bytes.
    pub right_int8: usize,
    /// Mails whose likeliest queue is another one.
    pub changed: usize,
    /// The smallest cosine between a mail's mean hidden state in f32 and on bytes.
    pub smallest_cosine: f64,
}

impl QuantizationLoss {
    /// Points of accuracy lost, 0 to 100; negative where bytes happened to do better.
    #[must_use]
    pub fn points(&self) -> f64 {
        100.0 * (self.right_f32 as f64 - self.right_int8 as f64) / self.mails.max(1) as f64
    }
}

impl Quantized {
    /// Most points of accuracy that may be lost on any set.
    pub const MOST_POINTS: f64 = 0.3;

    /// Refuses what was not measured or loses too much.
    ///
    /// # Errors
    /// The reason.
    pub fn check(&self) -> Result<(), String> {
        if self.measured.iter().all(|loss| loss.mails == 0) {
            return Err("what int8 costs was not measured".to_owned());
        }
        match self.measured.iter().find(|loss| loss.points() > Self::MOST_POINTS) {
            Some(loss) => Err(format!(
                "int8 loses {:.2} points of accuracy on {} ({} mails), more than the {} that are allowed",
                loss.points(),
                loss.data,
                loss.mails,
                Self::MOST_POINTS
            )),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loss(mails: usize, right_f32: usize, right_int8: usize) -> QuantizationLoss {
        QuantizationLoss {
            data: "mail.csv".to_owned(),
            mails,
            right_f32,
            right_int8,
            changed: 1,
            smallest_cosine: 0.9995,
        }
    }

    fn of(measured: Vec<QuantizationLoss>) -> Quantized {
        Quantized { kind: QuantizedType::Int8, measured }
    }

    #[test]
    fn what_loses_more_than_allowed_on_any_set_is_refused() {
        assert_eq!(of(vec![loss(1000, 950, 947), loss(1000, 950, 951)]).check(), Ok(()));
        let refused = of(vec![loss(1000, 950, 950), loss(1000, 950, 946)]).check().unwrap_err();
        assert!(refused.contains("0.40 points") && refused.contains("mail.csv"), "{refused}");
    }

    #[test]
    fn what_was_not_measured_is_refused() {
        assert!(of(Vec::new()).check().is_err());
        assert!(of(vec![loss(0, 0, 0)]).check().is_err());
    }

    #[test]
    fn router_json_says_it_so() {
        let json = r#"{"type":"int8","measured":[{"data":"mail.csv","mails":10,"right_f32":9,"right_int8":9,"changed":1,"smallest_cosine":0.9995}]}"#;
        let read: Quantized = serde_json::from_str(json).unwrap();
        assert_eq!(read, of(vec![loss(10, 9, 9)]));
        assert_eq!(serde_json::to_string(&read).unwrap(), json);
    }
}
