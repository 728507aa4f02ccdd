//! All that waits for the model, within one set of bounds: who is let in, who makes room, what runs next. No thread, no
//! clock, no network: every choice is a function of what waits and of the time that it is given.

use std::collections::{BTreeSet, HashMap};
use std::time::{Duration, Instant};

use super::batch_former::{First, Waiting, choose};
use super::line::{Entry, Held, Line, Waits};
use super::rate::Rate;
use super::shares::Shares;
use super::{Client, Dropped, InferenceConfig, InferenceError, Lane};

/// What runs next.
#[derive(Debug)]
pub(super) struct Batch<T> {
    pub lane: Lane,
    pub entries: Vec<Entry<T>>,
    pub tokens: usize,
}

/// Which bound a newcomer meets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bound {
    Mails,
    Tokens,
}

impl Bound {
    fn of(self, held: Held) -> usize {
        match self {
            Self::Mails => held.mails,
            Self::Tokens => held.tokens,
        }
    }
}

pub(super) struct Room<T> {
    config: InferenceConfig,
    lines: [Line<T>; Lane::ALL.len()],
    shares: Shares,
    rate: Rate,
    /// Tokens of the batch that runs now.
    running: usize,
    batches: u64,
    /// The last batch was dear: the next is mail to be routed, where some waits.
    route_is_next: bool,
    /// The last dear lane that had a turn.
    last_dear: Lane,
}

impl<T: Waits> Room<T> {
    pub(super) fn new(config: InferenceConfig) -> Self {
        let lines = Lane::ALL.map(|_| Line::default());
        let (shares, rate) = (Shares::default(), Rate::default());
        Self { config, lines, shares, rate, running: 0, batches: 0, route_is_next: true, last_dear: Lane::Explain }
    }

    /// Lets a mail in. Where it is full, the newest mails of the client that holds most make room for one that would hold
    /// less: they are returned, with what to tell their callers.
    ///
    /// # Errors
    /// [`InferenceError::Full`], [`InferenceError::OverShare`], [`InferenceError::TooLate`], [`InferenceError::Expired`].
    pub(super) fn admit(
        &mut self,
        lane: Lane,
        entry: Entry<T>,
        now: Instant,
    ) -> Result<Vec<(T, InferenceError)>, InferenceError> {
        if let Some((needed, left)) = self.too_late(lane, &entry, now) {
            if left.is_zero() {
                return Err(InferenceError::Expired);
            }
            return Err(InferenceError::TooLate { needed, left, retry_after: self.retry_after() });
        }
        let Some(displaced) = self.room_for(lane, &entry) else { return Err(self.refusal(lane, entry.caller.client)) };
        let mut told = Vec::new();
        if !displaced.is_empty() {
            let taken = self.line_mut(lane).take(|position, _| displaced.contains(&position));
            told = taken.into_iter().map(|entry| (entry.job, self.over_share(lane))).collect();
        }
        self.line_mut(lane).push(entry);
        Ok(told)
    }

    /// Whether a mail meets a bound as things stand: then it is worth looking for places that nobody needs any more.
    pub(super) fn crowded(&self, lane: Lane, entry: &Entry<T>, now: Instant) -> bool {
        self.bound(lane, entry.cost, 0, 0).is_some() || self.too_late(lane, entry, now).is_some()
    }

    /// Takes out what nobody waits for any more, with the lane that it waited in.
    pub(super) fn sweep(&mut self, now: Instant) -> Vec<(T, Lane, Dropped)> {
        let mut dropped = Vec::new();
        for (lane, line) in Lane::ALL.into_iter().zip(&mut self.lines) {
            let expired = |entry: &Entry<T>| entry.caller.deadline.is_some_and(|deadline| deadline <= now);
            if line.entries.iter().any(|entry| entry.job.abandoned() || expired(entry)) {
                let taken = line.take(|_, entry| entry.job.abandoned() || expired(entry));
                let why = |entry: &Entry<T>| if expired(entry) { Dropped::Expired } else { Dropped::Cancelled };
                dropped
                    .extend(taken.into_iter().map(|entry| (why(&entry), entry.job)).map(|(why, job)| (job, lane, why)));
            }
        }
        dropped
    }

    /// The next batch: lanes take turns, clients within a lane share by tokens.
    pub(super) fn next(&mut self) -> Option<Batch<T>> {
        let lane = self.turn()?;
        let budget = lane.batch_tokens(self.config.max_batch_tokens);
        let waiting: Vec<Waiting> = self.line(lane).entries.iter().map(Waiting::from).collect();
        let first = First::of_batch(self.batches);
        let chosen = choose(&waiting, |client| self.shares.of(client), first, budget);
        let mut positions = chosen.into_iter().peekable();
        let entries = self.line_mut(lane).take(|position, _| positions.next_if_eq(&position).is_some());
        entries.iter().for_each(|entry| self.shares.charge(entry.caller.client, entry.cost));
        let waiting: Vec<Client> = self.lines.iter().flat_map(|line| line.held.keys().copied()).collect();
        self.shares.settle(&waiting);
        let tokens = entries.iter().map(|entry| entry.cost).sum();
        (self.running, self.route_is_next) = (tokens, lane.is_dear());
        if lane.is_dear() {
            self.last_dear = lane;
        }
        self.batches += 1;
        Some(Batch { lane, entries, tokens })
    }

    /// Routing and dear work alternate, and so do the kinds of dear work; whoever is alone has every turn.
    fn turn(&self) -> Option<Lane> {
        let waits = |lane: &Lane| !self.line(*lane).entries.is_empty();
        let route = Some(Lane::Route).filter(waits);
        let (last, others): (Vec<Lane>, Vec<Lane>) =
            Lane::ALL.into_iter().filter(|lane| lane.is_dear()).partition(|&lane| lane == self.last_dear);
        let dear = others.into_iter().chain(last).find(waits);
        if self.route_is_next { route.or(dear) } else { dear.or(route) }
    }

    /// The batch that [`Room::next`] gave has run.
    pub(super) fn ran(&mut self, tokens: usize, ran: Duration) {
        self.running = 0;
        // Work of unknown size says nothing of the speed.
        if tokens > 0 {
            self.rate.add(tokens, ran);
        }
    }

    pub(super) fn mails(&self, lane: Lane) -> usize {
        self.line(lane).entries.len()
    }

    pub(super) fn tokens(&self) -> usize {
        self.lines.iter().map(|line| line.tokens).sum()
    }

    pub(super) fn rate(&self) -> &Rate {
        &self.rate
    }

    fn line(&self, lane: Lane) -> &Line<T> {
        &self.lines[lane as usize]
    }

    fn line_mut(&mut self, lane: Lane) -> &mut Line<T> {
        &mut self.lines[lane as usize]
    }

    /// Positions of the mails that must go for this one; `None` where it has no claim to their places.
    fn room_for(&self, lane: Lane, entry: &Entry<T>) -> Option<BTreeSet<usize>> {
        let line = self.line(lane);
        let (mut gone, mut gone_tokens) = (BTreeSet::new(), 0);
        let mut held: Option<HashMap<Client, Held>> = None;
        while let Some(bound) = self.bound(lane, entry.cost, gone.len(), gone_tokens) {
            let held = held.get_or_insert_with(|| line.held.clone());
            let mine = held.get(&entry.caller.client).copied().unwrap_or_default();
            let mine = bound.of(Held { mails: mine.mails + 1, tokens: mine.tokens + entry.cost });
            let others = held.iter_mut().filter(|(client, _)| **client != entry.caller.client);
            let (client, theirs) = others.max_by_key(|(_, held)| bound.of(**held))?;
            let newest =
                |(position, other): &(usize, &Entry<T>)| other.caller.client == *client && !gone.contains(position);
            let (position, newest) = line.entries.iter().enumerate().rev().find(newest)?;
            *theirs = Held { mails: theirs.mails - 1, tokens: theirs.tokens - newest.cost };
            if bound.of(*theirs) < mine {
                return None;
            }
            gone.insert(position);
            gone_tokens += newest.cost;
        }
        Some(gone)
    }

    /// The bound that a mail of this cost would break, were some others gone. With nothing waiting any mail is let in.
    fn bound(&self, lane: Lane, cost: usize, gone: usize, gone_tokens: usize) -> Option<Bound> {
        let tokens = self.tokens() - gone_tokens;
        if self.mails(lane) - gone >= self.config.max_waiting(lane) {
            Some(Bound::Mails)
        } else if tokens > 0 && tokens + cost > self.config.max_waiting_tokens {
            Some(Bound::Tokens)
        } else {
            None
        }
    }

    /// Why there is no room: for all, or for this client, which holds more than others that wait.
    fn refusal(&self, lane: Lane, client: Client) -> InferenceError {
        let line = self.line(lane);
        let mine = line.held.get(&client).map_or(0, |held| held.tokens);
        let most = line.held.values().map(|held| held.tokens).max().unwrap_or(0);
        if line.held.len() > 1 && mine == most { self.over_share(lane) } else { self.full(lane) }
    }

    fn full(&self, lane: Lane) -> InferenceError {
        let (waiting, limit) = (self.mails(lane), self.config.max_waiting(lane));
        InferenceError::Full { waiting, limit, retry_after: self.retry_after() }
    }

    fn over_share(&self, lane: Lane) -> InferenceError {
        let (waiting, limit) = (self.mails(lane), self.config.max_waiting(lane));
        InferenceError::OverShare { waiting, limit, retry_after: self.retry_after() }
    }

    fn retry_after(&self) -> Duration {
        self.rate.retry_after(self.tokens())
    }

    /// The time that a mail needs and the time that it has, where that is less.
    fn too_late(&self, lane: Lane, entry: &Entry<T>, now: Instant) -> Option<(Duration, Duration)> {
        let left = entry.caller.deadline?.saturating_duration_since(now);
        // Where nothing runs and nothing waits every mail is tried: an estimate from slower times would otherwise never be
        // put right.
        let idle = self.running == 0 && self.lines.iter().all(|line| line.entries.is_empty());
        let needed = if idle { None } else { self.time_until_done(lane, entry) }.unwrap_or_default();
        (left.is_zero() || needed > left).then_some((needed, left))
    }

    /// An estimate of when a mail would be done: what runs, what its lane has before it while clients share evenly, itself, the
    /// rest of its batch, which is answered as one, and what the other lanes put between.
    fn time_until_done(&self, lane: Lane, entry: &Entry<T>) -> Option<Duration> {
        let line = self.line(lane);
        let mine = line.held.get(&entry.caller.client).map_or(0, |held| held.tokens) + entry.cost;
        let before: usize = line
            .held
            .iter()
            .filter(|(client, _)| **client != entry.caller.client)
            .map(|(_, held)| held.tokens.min(mine))
            .sum();
        let (turns, whole_batches) = match lane.batch_tokens(self.config.max_batch_tokens) {
            0 => (line.entries.len() + 1, before + mine),
            budget => {
                let usual = self.rate.usual_batch().clamp(1, budget);
                ((before + mine).div_ceil(budget), (before + mine).next_multiple_of(usual))
            }
        };
        let others = (self.tokens() - line.tokens).min(turns.saturating_mul(self.config.max_batch_tokens));
        self.rate.time_for(self.running + whole_batches + others)
    }
}

impl<T> From<&Entry<T>> for Waiting {
    fn from(entry: &Entry<T>) -> Self {
        Self { cost: entry.cost, client: entry.caller.client }
    }
}

#[cfg(test)]
mod tests;
