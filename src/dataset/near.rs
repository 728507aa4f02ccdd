//! Pairs of texts that nearly repeat each other, found in nearly linear time.
//!
//! A text is the set of its runs of five words. MinHash (Broder 1997) estimates how much two sets share; texts whose hashes agree in
//! a whole band are compared exactly (Jaccard index of at least 0.8). With 20 bands of 5 hashes a pair at 0.8 is missed with a
//! probability of 0.0004. Within a bucket a text is compared with a few representatives only, so that thousands of copies of one
//! template cost no more than thousands of different texts. All constants are fixed: the same texts give the same pairs.

/// Words of a run.
const RUN: usize = 5;
const BANDS: usize = 20;
const ROWS: usize = 5;
/// Texts of a bucket that others are compared with.
const REPRESENTATIVES: usize = 16;

/// A text as hashes of its runs of words, ascending and each once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Shingles(Vec<u32>);

impl Shingles {
    /// Letters and digits make words; case does not count. A text of fewer than five words is one run.
    pub(super) fn new(text: &str) -> Self {
        let words = text.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty());
        let words: Vec<u64> = words.map(hash_word).collect();
        let runs = words.windows(RUN.min(words.len().max(1)));
        let mut hashes: Vec<u32> =
            runs.map(|run| (run.iter().fold(0, |hash, &word| mix(hash ^ word)) >> 32) as u32).collect();
        hashes.sort_unstable();
        hashes.dedup();
        Self(hashes)
    }

    /// Whether the sets share at least four fifths of their union.
    fn nearly_equal(&self, other: &Self) -> bool {
        let (a, b) = (&self.0, &other.0);
        let (mut i, mut j, mut shared) = (0, 0, 0);
        while i < a.len() && j < b.len() {
            match a[i].cmp(&b[j]) {
                std::cmp::Ordering::Less => i += 1,
                std::cmp::Ordering::Greater => j += 1,
                std::cmp::Ordering::Equal => (i, j, shared) = (i + 1, j + 1, shared + 1),
            }
        }
        5 * shared >= 4 * (a.len() + b.len() - shared)
    }

    /// The least value of each hash function over the set.
    fn signature(&self, functions: &[(u64, u64)]) -> Vec<u32> {
        let mut least = vec![u32::MAX; functions.len()];
        for &run in &self.0 {
            for (least, (factor, summand)) in least.iter_mut().zip(functions) {
                let hash = (u64::from(run).wrapping_mul(*factor).wrapping_add(*summand) >> 32) as u32;
                *least = (*least).min(hash);
            }
        }
        least
    }
}

/// FNV-1a over the letters in lower case.
fn hash_word(word: &str) -> u64 {
    word.chars().flat_map(char::to_lowercase).fold(0xCBF2_9CE4_8422_2325, |hash, letter| {
        (hash ^ u64::from(u32::from(letter))).wrapping_mul(0x0100_0000_01B3)
    })
}

/// The finalizer of SplitMix64.
fn mix(value: u64) -> u64 {
    let z = value.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// Unites near duplicates in `sets` and answers the texts that were united with an earlier set.
pub(super) fn unite(texts: &[Shingles], sets: &mut Sets) -> Vec<usize> {
    let functions: Vec<(u64, u64)> =
        (0..(BANDS * ROWS) as u64).map(|index| (mix(2 * index) | 1, mix(2 * index + 1))).collect();
    let signatures: Vec<Vec<u32>> = texts.iter().map(|text| text.signature(&functions)).collect();
    let mut united = Vec::new();
    for band in 0..BANDS {
        let key = |text: usize| {
            let rows = &signatures[text][band * ROWS..(band + 1) * ROWS];
            rows.iter().fold(0, |hash, &row| mix(hash ^ u64::from(row)))
        };
        // A text without a word is like no other.
        let with_words = (0..texts.len()).filter(|&text| !texts[text].0.is_empty());
        let mut keyed: Vec<(u64, usize)> = with_words.map(|text| (key(text), text)).collect();
        keyed.sort_unstable();
        for bucket in keyed.chunk_by(|a, b| a.0 == b.0) {
            within_bucket(bucket.iter().map(|&(_, text)| text), texts, sets, &mut united);
        }
        sets.flatten();
    }
    united
}

fn within_bucket(bucket: impl Iterator<Item = usize>, texts: &[Shingles], sets: &mut Sets, united: &mut Vec<usize>) {
    let mut representatives: Vec<usize> = Vec::new();
    for text in bucket {
        let of_another = |other: &usize| sets.find(*other) != sets.find(text);
        let like = representatives.iter().copied().filter(of_another);
        let like: Vec<usize> = like.filter(|&other| texts[text].nearly_equal(&texts[other])).collect();
        for &other in &like {
            if sets.unite(text, other) {
                united.push(text);
            }
        }
        if like.is_empty() && representatives.len() < REPRESENTATIVES {
            representatives.push(text);
        }
    }
}

/// Sets that only grow together (union-find); the first member names a set.
pub(super) struct Sets(Vec<usize>);

impl Sets {
    pub(super) fn new(members: usize) -> Self {
        Self((0..members).collect())
    }

    /// The first member of the set.
    pub(super) fn find(&self, mut member: usize) -> usize {
        while self.0[member] != member {
            member = self.0[member];
        }
        member
    }

    /// Makes two sets one; answers whether they were two.
    pub(super) fn unite(&mut self, a: usize, b: usize) -> bool {
        let (a, b) = (self.find(a), self.find(b));
        let (first, second) = (a.min(b), a.max(b));
        self.0[second] = first;
        first != second
    }

    /// Points every member straight at the first of its set, after which `find` takes one step.
    pub(super) fn flatten(&mut self) {
        for member in 0..self.0.len() {
            self.0[member] = self.find(member);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `words` words that no other seed has.
    fn text(seed: u64, words: usize) -> Vec<String> {
        (0..words as u64).map(|at| format!("w{}", mix(seed << 32 | at) % 5000)).collect()
    }

    fn united(texts: &[String]) -> (Vec<usize>, Sets) {
        let shingles: Vec<Shingles> = texts.iter().map(|text| Shingles::new(text)).collect();
        let mut sets = Sets::new(texts.len());
        let united = unite(&shingles, &mut sets);
        (united, sets)
    }

    #[test]
    fn a_changed_word_keeps_texts_together_and_other_texts_apart() {
        let long = text(1, 120);
        let mut changed = long.clone();
        changed[60] = "1234567".to_owned();
        let (united, sets) = united(&[long.join(" "), text(2, 120).join(" "), changed.join(", ").to_uppercase()]);
        assert_eq!(united, [2]);
        assert_eq!(sets.find(2), 0);
        assert_eq!(sets.find(1), 1);
    }

    #[test]
    fn texts_that_share_half_their_words_are_no_near_duplicates() {
        let (a, b) = (text(1, 100), text(2, 50));
        let half: Vec<String> = a[..50].iter().chain(&b).cloned().collect();
        assert!(united(&[a.join(" "), half.join(" ")]).0.is_empty());
    }

    #[test]
    fn nearly_all_pairs_at_the_bar_are_found() {
        let mut texts = Vec::new();
        for seed in 0..200 {
            // Two changed words of 100: 86 of 106 runs are shared.
            let base = text(seed, 100);
            let mut changed = base.clone();
            changed[20] = format!("x{seed}");
            changed[70] = format!("y{seed}");
            texts.extend([base.join(" "), changed.join(" ")]);
        }
        let found = united(&texts).0;
        assert!(found.len() >= 199, "{}", found.len());
        assert!(found.iter().all(|text| text % 2 == 1), "{found:?}");
    }

    #[test]
    fn blank_texts_are_not_united() {
        assert!(united(&["".into(), "?!".into(), " ".into()]).0.is_empty());
    }

    #[test]
    fn a_text_in_a_set_with_a_representative_still_finds_its_other_copies() {
        let base = text(1, 60).join(" ");
        let shingles: Vec<Shingles> = [&base, &base, &base].map(|text| Shingles::new(text)).to_vec();
        let mut sets = Sets::new(3);
        sets.unite(0, 1);
        unite(&shingles, &mut sets);
        sets.flatten();
        assert_eq!(sets.0, [0, 0, 0]);
    }

    // Seconds even without optimisation; comparing all pairs would take hours.
    #[test]
    fn fifty_thousand_mails_take_seconds() {
        let template = text(9, 150);
        let texts: Vec<String> = (0..50_000u64)
            .map(|seed| {
                let mut words = if seed % 2 == 0 { template.clone() } else { text(seed + 10, 150) };
                words[3] = format!("n{seed}");
                words.join(" ")
            })
            .collect();
        let start = std::time::Instant::now();
        let found = united(&texts).0.len();
        assert_eq!(found, 24_999);
        assert!(start.elapsed().as_secs() < 30, "{:?}", start.elapsed());
    }
}
