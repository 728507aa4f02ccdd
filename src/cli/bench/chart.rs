//! The figures as one SVG: on the left how latency is distributed, on the right throughput by clients, or latency by length
//! where only one number of clients was measured.

use std::fmt::Write;

use super::figures::{Figures, Level, quantile};

/// Size of a panel's plot in user units; axis labels stand left of and below it.
const WIDTH: f64 = 340.0;
const HEIGHT: f64 = 220.0;
const LEFT: f64 = 70.0;
const TOP: f64 = 60.0;
const GAP: f64 = 110.0;

/// Told apart without colour vision (Okabe and Ito).
const COLOURS: [&str; 6] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"];

/// Upper ends of the lengths that are told apart, in tokens.
const LENGTHS: [usize; 5] = [32, 64, 128, 256, 512];

/// Draws the chart.
pub(super) fn draw(figures: &Figures) -> String {
    let mut out = String::new();
    let (width, height) = (2.0 * WIDTH + 2.0 * LEFT + GAP - 60.0, TOP + HEIGHT + 60.0);
    let _ = writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" \
         font-family=\"sans-serif\" font-size=\"12\" fill=\"#222\">\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>"
    );
    let title = format!("{} mails of {}, answered by {}", figures.mails, figures.source, figures.target);
    text(&mut out, "start", (LEFT, 20.0), &title);
    let panel = |index: f64| Panel { left: LEFT + index * (WIDTH + GAP) };
    distribution(&mut out, &panel(0.0), &figures.levels);
    match figures.levels.as_slice() {
        [level] if !level.by_length.is_empty() => by_length(&mut out, &panel(1.0), level),
        levels => throughput(&mut out, &panel(1.0), levels),
    }
    out.push_str("</svg>\n");
    out
}

/// Places of one panel; shares of its width and height run from its lower left corner.
struct Panel {
    left: f64,
}

impl Panel {
    fn at(&self, x: f64, y: f64) -> (f64, f64) {
        (self.left + WIDTH * x, TOP + HEIGHT * (1.0 - y))
    }

    /// A name above, and five labelled lines from 0 to `top`.
    fn frame(&self, out: &mut String, name: &str, below: &str, top: f64) {
        text(out, "start", (self.left, TOP - 14.0), name);
        for step in 0..=4 {
            let share = f64::from(step) / 4.0;
            let ((x0, y), (x1, _)) = (self.at(0.0, share), self.at(1.0, share));
            let _ = writeln!(out, "<path d=\"M{x0:.1} {y:.1}H{x1:.1}\" stroke=\"#ccc\"/>");
            text(out, "end", (x0 - 8.0, y + 4.0), &short(share * top));
        }
        let (x, y) = self.at(0.5, 0.0);
        text(out, "middle", (x, y + 40.0), below);
    }
}

/// Latency against the share of requests that were answered faster, a curve for each number of clients.
fn distribution(out: &mut String, panel: &Panel, levels: &[Level]) {
    let slowest = levels.iter().map(|level| level.latency_ms.p99).fold(0.0, f64::max);
    let top = round_up(slowest);
    panel.frame(out, "Latency in ms", "share of requests, 0 to 99%", top);
    for (index, level) in levels.iter().enumerate() {
        let colour = COLOURS[index % COLOURS.len()];
        let mut points = String::new();
        for percent in 0..=99 {
            let share = f64::from(percent) / 100.0;
            let (x, y) = panel.at(share / 0.99, quantile(&level.sorted_ms, share) / top);
            let _ = write!(points, "{x:.1},{y:.1} ");
        }
        let _ = writeln!(out, "<polyline points=\"{points}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>");
        let place = (panel.left + 10.0, TOP + 16.0 + 16.0 * index as f64);
        let _ = write!(out, "<g fill=\"{colour}\">");
        let plural = if level.clients == 1 { "" } else { "s" };
        text(out, "start", place, &format!("{} client{plural}", level.clients));
        out.push_str("</g>\n");
    }
}

fn throughput(out: &mut String, panel: &Panel, levels: &[Level]) {
    let bars = levels.iter().map(|level| Bar {
        name: level.clients.to_string(),
        value: level.mails_per_s,
        hint: format!("{:.1} mails a second", level.mails_per_s),
    });
    draw_bars(out, panel, ("Mails a second", "clients"), &bars.collect::<Vec<_>>());
}

fn by_length(out: &mut String, panel: &Panel, level: &Level) {
    let mut bars = Vec::new();
    let mut above = 0;
    for up_to in LENGTHS.into_iter().chain([usize::MAX]) {
        let of_length = level.by_length.iter().filter(|(tokens, _)| (above + 1..=up_to).contains(tokens));
        let mut sorted: Vec<f64> = of_length.map(|(_, ms)| *ms).collect();
        sorted.sort_unstable_by(f64::total_cmp);
        let name = if up_to == usize::MAX { format!("> {above}") } else { format!("{}-{up_to}", above + 1) };
        let (value, count) = (quantile(&sorted, 0.5), sorted.len());
        bars.push(Bar { name, value, hint: format!("{count} requests, median {value:.2} ms") });
        above = up_to;
    }
    draw_bars(out, panel, ("Median latency in ms", "tokens of the mail"), &bars);
}

struct Bar {
    name: String,
    value: f64,
    /// Shown where the pointer rests.
    hint: String,
}

fn draw_bars(out: &mut String, panel: &Panel, (name, below): (&str, &str), bars: &[Bar]) {
    let top = round_up(bars.iter().map(|bar| bar.value).fold(0.0, f64::max));
    panel.frame(out, name, below, top);
    let step = 1.0 / bars.len().max(1) as f64;
    for (index, bar) in bars.iter().enumerate() {
        let share = (index as f64 + 0.2) * step;
        let (x, y) = panel.at(share, bar.value / top);
        let (width, height) = (0.6 * step * WIDTH, HEIGHT * bar.value / top);
        let _ = write!(
            out,
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" fill=\"{}\"><title>",
            COLOURS[0]
        );
        escape(out, &bar.hint);
        out.push_str("</title></rect>\n");
        text(out, "middle", (x + width / 2.0, TOP + HEIGHT + 18.0), &bar.name);
    }
}

fn text(out: &mut String, anchor: &str, (x, y): (f64, f64), content: &str) {
    let _ = write!(out, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">");
    escape(out, content);
    out.push_str("</text>\n");
}

fn escape(out: &mut String, content: &str) {
    for letter in content.chars() {
        match letter {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            letter if letter.is_control() => out.push(' '),
            letter => out.push(letter),
        }
    }
}

/// The next value of 1, 2, 4 or 8 times a power of ten; 1 where there is nothing to show.
fn round_up(value: f64) -> f64 {
    if value <= 0.0 || !value.is_finite() {
        return 1.0;
    }
    let power = 10f64.powf(value.log10().floor());
    [1.0, 2.0, 4.0, 8.0].into_iter().map(|step| step * power).find(|&top| top >= value).unwrap_or(10.0 * power)
}

/// No more digits than a label needs.
fn short(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::super::drive::{Answered, Outcome};
    use super::super::figures::{Rates, Tokens};
    use super::super::work::MailWork;
    use super::*;

    fn figures(clients: &[usize]) -> Figures {
        let work = [MailWork { windows: vec![40], operations: 1.0 }];
        let answered = (1..=50).map(|i| Answered { mail: 0, micros: 1000 * i }).collect();
        let outcome = Outcome { answered, refused: 0, seconds: 1.0 };
        let level = |&clients| Level::new(clients, &outcome, None, &work, &Rates::default(), (None, None));
        let names = ("a < b & c".to_owned(), "mail".to_owned(), 1);
        let levels = clients.iter().map(level).collect();
        Figures::new(names, Rates::default(), Tokens::of(&work, 1), None, levels)
    }

    #[test]
    fn one_level_shows_lengths_and_several_show_throughput() {
        let one = draw(&figures(&[1]));
        assert!(one.contains("Median latency in ms") && one.contains("50 requests, median 25.00 ms"), "{one}");
        let two = draw(&figures(&[1, 4]));
        assert!(two.contains("Mails a second") && two.matches("<polyline").count() == 2, "{two}");
        assert!(two.contains("a &lt; b &amp; c"));
    }

    #[test]
    fn axes_end_at_round_values() {
        assert_eq!([0.0, 0.3, 1.0, 3.0, 9.0, 130.0].map(round_up), [1.0, 0.4, 1.0, 4.0, 10.0, 200.0]);
        assert_eq!([0.25, 50.0, 0.0].map(short), ["0.25", "50", "0"]);
    }
}
