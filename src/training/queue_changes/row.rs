//! One new row of a softmax whose other rows stay: `z_new = w x + b`.
//!
//! With the other logits of a mail fixed, multinomial cross entropy depends on the new row only through `z_new - E`, `E` the
//! log of the sum of the others' exponentials. So the row is a logistic regression with the offset `-E`: convex, and a matter
//! of milliseconds for some hundred mails.

use crate::training::logistic::{LogisticConfig, minimize};

/// A mail as the new row sees it. All logits are divided by the temperature, so that what is fitted is what is served.
#[derive(Debug, Clone)]
pub(super) struct RowMail {
    /// `[width]`
    pub features: Vec<f32>,
    /// Log of the sum of exponentials of the other logits.
    pub others: f64,
    /// Whether it is mail of the new queue.
    pub own: bool,
    /// How much it counts.
    pub share: f64,
}

/// The fitted row.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct NewRow {
    pub weight: Vec<f64>,
    pub bias: f64,
}

impl NewRow {
    /// Fits the row; `c` is the inverse strength of the L2 penalty on its weights, as in [`LogisticConfig`].
    pub(super) fn fit(mails: &[&RowMail], width: usize, c: f64) -> Self {
        let mut parameters = vec![0.0; width + 1];
        let config = LogisticConfig { c, ..LogisticConfig::default() };
        minimize(&mut parameters, &config, |parameters, gradient| loss(mails, c, parameters, gradient));
        let bias = parameters.pop().unwrap_or_default();
        Self { weight: parameters, bias }
    }

    /// The new logit of a mail, divided by the temperature.
    pub(super) fn logit(&self, features: &[f32]) -> f64 {
        dot(&self.weight, features) + self.bias
    }
}

fn dot(weight: &[f64], features: &[f32]) -> f64 {
    weight.iter().zip(features).map(|(weight, &x)| weight * f64::from(x)).sum()
}

/// Mean loss per mail and its gradient; the last parameter is the bias, which is not penalised.
fn loss(mails: &[&RowMail], c: f64, parameters: &[f64], gradient: &mut [f64]) -> f64 {
    let n = mails.iter().map(|mail| mail.share).sum::<f64>().max(f64::MIN_POSITIVE);
    let last = parameters.len() - 1;
    let (weight, bias) = (&parameters[..last], parameters[last]);
    let penalty = 1.0 / (c * n);
    for (gradient, weight) in gradient.iter_mut().zip(weight) {
        *gradient = penalty * weight;
    }
    gradient[last] = 0.0;
    let mut total = 0.0;
    for mail in mails {
        let margin = dot(weight, &mail.features) + bias - mail.others;
        let sign = if mail.own { 1.0 } else { -1.0 };
        // ln(1 + e^-sm) without overflow, and its derivative.
        total += mail.share * (-sign * margin).max(0.0) + mail.share * (-margin.abs()).exp().ln_1p();
        let slope = -sign * mail.share / (1.0 + (sign * margin).exp()) / n;
        gradient[..last].iter_mut().zip(&mail.features).for_each(|(gradient, &x)| *gradient += slope * f64::from(x));
        gradient[last] += slope;
    }
    total / n + penalty * weight.iter().map(|weight| weight * weight).sum::<f64>() / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mails() -> Vec<RowMail> {
        let mail = |features: [f32; 2], others, own, share| RowMail { features: features.into(), others, own, share };
        vec![
            mail([1.0, 0.1], 3.0, true, 2.0),
            mail([0.9, -0.2], 5.0, true, 1.0),
            mail([-0.3, 0.9], 6.0, false, 1.0),
            mail([0.1, 1.0], 4.0, false, 1.0),
        ]
    }

    #[test]
    fn the_gradient_is_that_of_the_loss() {
        let mails = mails();
        let mails: Vec<&RowMail> = mails.iter().collect();
        let parameters = [0.4, -0.3, 1.2];
        let mut gradient = [0.0; 3];
        loss(&mails, 2.0, &parameters, &mut gradient);
        for index in 0..3 {
            let at = |shift: f64| {
                let mut moved = parameters;
                moved[index] += shift;
                loss(&mails, 2.0, &moved, &mut [0.0; 3])
            };
            let difference = (at(1e-5) - at(-1e-5)) / 2e-5;
            assert!((difference - gradient[index]).abs() < 1e-8, "{index}: {difference} {}", gradient[index]);
        }
    }

    #[test]
    fn the_new_row_overtakes_the_others_on_its_own_mail_only() {
        let mails = mails();
        let row = NewRow::fit(&mails.iter().collect::<Vec<_>>(), 2, 100.0);
        for mail in &mails {
            assert_eq!(row.logit(&mail.features) > mail.others, mail.own, "{row:?}");
        }
    }

    #[test]
    fn no_mail_gives_a_row_of_zeros() {
        assert_eq!(NewRow::fit(&[], 2, 1.0), NewRow { weight: vec![0.0; 2], bias: 0.0 });
    }
}
