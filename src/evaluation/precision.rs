//! What a router's lower precision does to labelled mail.

use super::{BATCH_TOKENS, EvaluationError, target};
use crate::artifact::{QuantizationLoss, Router};
use crate::collate::{WindowedEmail, batches, pack};
use crate::dataset::Example;
use crate::email::CleanOptions;

/// Asks the same router in both precisions about every mail; `data` is the name of the set.
///
/// # Errors
/// [`EvaluationError`].
pub fn compare_precisions(
    in_floats: &Router,
    on_bytes: &Router,
    data: &str,
    examples: &[Example],
    progress: &mut dyn FnMut(usize, usize),
) -> Result<QuantizationLoss, EvaluationError> {
    let info = &in_floats.info;
    let mut windowed: Vec<WindowedEmail> = Vec::with_capacity(examples.len());
    let mut mails = Vec::with_capacity(examples.len());
    for example in examples {
        let cleaned = example.clean(&CleanOptions::default());
        let encoded = in_floats.tokenizer.encode(&cleaned, info.windows.max_tokens);
        windowed.push(WindowedEmail::new(&encoded, &in_floats.tokenizer, &info.windows, info.pooling));
        mails.push((target(in_floats, example)?, in_floats.word_logits(&encoded)));
    }
    let (mut right_f32, mut right_int8, mut changed) = (0, 0, 0);
    let mut smallest_cosine = 1.0_f64;
    let mut done = 0;
    for batch in batches(&windowed, BATCH_TOKENS) {
        let packed = pack(batch.iter().map(|&mail| &windowed[mail]));
        let [floats, bytes] = [in_floats, on_bytes].map(|router| router.classifier.forward_and_pool(&packed));
        let (floats, bytes) = (floats?, bytes?);
        for (place, mail) in batch.into_iter().enumerate() {
            let (target, words) = &mails[mail];
            let queue = |logits: &[f32]| {
                let logits = info.queue_logits(&in_floats.join(logits, words));
                info.calibration.judge(&logits, None, |_| None).best
            };
            let (f32, int8) = (queue(&floats.logits[place]), queue(&bytes.logits[place]));
            right_f32 += usize::from(f32 == *target);
            right_int8 += usize::from(int8 == *target);
            changed += usize::from(f32 != int8);
            smallest_cosine = smallest_cosine.min(cosine(&floats.pooled[place], &bytes.pooled[place]));
            done += 1;
        }
        progress(done, windowed.len());
    }
    // Five digits are what it is compared by.
    let smallest_cosine = (smallest_cosine * 1e5).floor() / 1e5;
    Ok(QuantizationLoss { data: data.to_owned(), mails: mails.len(), right_f32, right_int8, changed, smallest_cosine })
}

fn cosine(a: &[f32], b: &[f32]) -> f64 {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum::<f64>();
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cosine_of_a_vector_to_itself_is_one_and_to_a_right_angle_nothing() {
        assert!((cosine(&[3.0, 4.0], &[6.0, 8.0]) - 1.0).abs() < 1e-12);
        assert_eq!(cosine(&[1.0, 0.0], &[0.0, 2.0]), 0.0);
        assert!((cosine(&[1.0, 0.0], &[1.0, 1.0]) - 0.5_f64.sqrt()).abs() < 1e-12);
    }
}
