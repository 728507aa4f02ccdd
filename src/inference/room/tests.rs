use super::super::Caller;
use super::*;

/// A mail by its name; it may have lost its caller.
#[derive(Debug, PartialEq)]
struct Named(&'static str, bool);

impl Waits for Named {
    fn abandoned(&self) -> bool {
        self.1
    }
}

fn config(mails: usize, tokens: usize) -> InferenceConfig {
    InferenceConfig { max_waiting_mails: mails, max_waiting_tokens: tokens, max_batch_tokens: 100, max_waiting_maps: 2 }
}

fn entry(client: &'static str, cost: usize) -> Entry<Named> {
    let caller = Caller { client: Client::of(client), deadline: None };
    Entry { cost, caller, arrived: Instant::now(), job: Named(client, false) }
}

fn due_in(client: &'static str, cost: usize, left: Duration, now: Instant) -> Entry<Named> {
    let mut entry = entry(client, cost);
    entry.caller.deadline = Some(now + left);
    entry
}

fn names(batch: Option<Batch<Named>>) -> Vec<&'static str> {
    batch.map(|batch| batch.entries.iter().map(|entry| entry.job.0).collect()).unwrap_or_default()
}

#[test]
fn one_client_alone_is_told_that_the_queue_is_full() {
    let (mut room, now) = (Room::new(config(2, 1000)), Instant::now());
    for _ in 0..2 {
        assert!(room.admit(Lane::Route, entry("a", 10), now).unwrap().is_empty());
    }
    let refused = room.admit(Lane::Route, entry("a", 10), now).unwrap_err();
    assert!(matches!(refused, InferenceError::Full { waiting: 2, limit: 2, .. }), "{refused}");
}

#[test]
fn tokens_are_bounded_as_well_but_a_mail_that_waits_alone_is_always_let_in() {
    let (mut room, now) = (Room::new(config(100, 50)), Instant::now());
    room.admit(Lane::Route, entry("a", 500), now).unwrap();
    assert!(matches!(room.admit(Lane::Route, entry("a", 1), now), Err(InferenceError::Full { .. })));
    assert!(matches!(room.admit(Lane::Maps, entry("a", 1), now), Err(InferenceError::Full { .. })));
    assert_eq!(room.tokens(), 500);
}

#[test]
fn who_holds_most_makes_room_for_who_holds_less_and_is_told_so() {
    let (mut room, now) = (Room::new(config(4, 1000)), Instant::now());
    for _ in 0..4 {
        room.admit(Lane::Route, entry("flood", 10), now).unwrap();
    }
    let displaced = room.admit(Lane::Route, entry("single", 10), now).unwrap();
    assert_eq!(displaced.len(), 1);
    assert!(matches!(displaced[0], (Named("flood", _), InferenceError::OverShare { .. })));
    let refused = room.admit(Lane::Route, entry("flood", 10), now).unwrap_err();
    assert!(matches!(refused, InferenceError::OverShare { .. }), "{refused}");
    // Level at two each: nobody can push the other out any further.
    assert_eq!(room.admit(Lane::Route, entry("single", 10), now).unwrap().len(), 1);
    assert!(room.admit(Lane::Route, entry("single", 10), now).is_err());
    assert_eq!(room.mails(Lane::Route), 4);
}

#[test]
fn a_long_mail_does_not_push_out_many_short_ones_of_a_client_that_holds_less() {
    let (mut room, now) = (Room::new(config(100, 100)), Instant::now());
    for _ in 0..10 {
        room.admit(Lane::Route, entry("short", 10), now).unwrap();
    }
    assert!(room.admit(Lane::Route, entry("long", 90), now).is_err());
    assert_eq!((room.mails(Lane::Route), room.tokens()), (10, 100));
    assert_eq!(room.admit(Lane::Route, entry("long", 50), now).unwrap().len(), 5);
}

/// The lanes of the batches that run, letter by letter: `r` mail, `m` a map, `e` a part of an explanation.
fn order(mails: usize, maps: usize, parts: usize) -> String {
    let (mut room, now) = (Room::new(InferenceConfig { max_waiting_maps: 10, ..config(10, 10_000) }), Instant::now());
    for (lane, count) in [(Lane::Route, mails), (Lane::Maps, maps), (Lane::Explain, parts)] {
        for _ in 0..count {
            room.admit(lane, entry("a", 60), now).unwrap();
        }
    }
    let mut order = String::new();
    while let Some(batch) = room.next() {
        assert_eq!(batch.entries.len(), 1);
        order.push_str(&batch.lane.name()[..1]);
    }
    order
}

#[test]
fn while_mail_waits_no_two_pieces_of_dear_work_run_in_a_row() {
    assert_eq!(order(4, 2, 2), "rmrermre");
    assert_eq!(order(2, 0, 4), "rereee");
    assert_eq!(order(3, 0, 0), "rrr");
    assert_eq!(order(0, 2, 2), "meme");
}

#[test]
fn each_lane_has_bounds_of_its_own() {
    let (mut room, now) = (Room::new(config(10, 1000)), Instant::now());
    for client in ["map 1", "map 2"] {
        room.admit(Lane::Maps, entry(client, 60), now).unwrap();
    }
    assert!(matches!(room.admit(Lane::Maps, entry("map 1", 1), now), Err(InferenceError::OverShare { .. })));
    room.admit(Lane::Route, entry("map 1", 60), now).unwrap();
}

#[test]
fn what_nobody_waits_for_is_swept_and_its_place_is_free() {
    let (mut room, now) = (Room::new(config(3, 1000)), Instant::now());
    let soon = Duration::from_millis(10);
    room.admit(Lane::Route, due_in("late", 10, soon, now), now).unwrap();
    room.admit(Lane::Route, Entry { job: Named("gone", true), ..entry("gone", 10) }, now).unwrap();
    room.admit(Lane::Route, entry("waits", 10), now).unwrap();
    assert_eq!(room.sweep(now), [(Named("gone", true), Lane::Route, Dropped::Cancelled)]);
    assert_eq!(room.sweep(now + soon), [(Named("late", false), Lane::Route, Dropped::Expired)]);
    assert_eq!((room.mails(Lane::Route), room.tokens()), (1, 10));
    assert_eq!(names(room.next()), ["waits"]);
}

#[test]
fn what_cannot_be_done_in_time_is_refused_at_once() {
    let (mut room, now) = (Room::new(config(100, 10_000)), Instant::now());
    let second = Duration::from_secs(1);
    assert!(matches!(room.admit(Lane::Route, due_in("a", 10, Duration::ZERO, now), now), Err(InferenceError::Expired)));
    // Nothing is known of the speed yet.
    room.admit(Lane::Route, due_in("a", 400, second, now), now).unwrap();
    room.ran(1000, 10 * second);
    // 400 tokens wait at 100 a second.
    let refused = room.admit(Lane::Route, due_in("a", 100, 4 * second, now), now).unwrap_err();
    let InferenceError::TooLate { needed, left, retry_after } = refused else { panic!("{refused}") };
    assert_eq!((needed, left, retry_after), (5 * second, 4 * second, 2 * second));
    room.admit(Lane::Route, due_in("a", 100, 5 * second, now), now).unwrap();
    // Another client shares evenly: it does not wait for all of these.
    room.admit(Lane::Route, due_in("b", 100, 2 * second, now), now).unwrap();
}

#[test]
fn a_mail_waits_for_the_whole_of_its_batch() {
    let (mut room, now) = (Room::new(config(100, 10_000)), Instant::now());
    room.ran(1000, Duration::from_secs(10));
    room.admit(Lane::Route, entry("a", 10), now).unwrap();
    // 20 tokens would take a fifth of a second at 100 a second, a batch of 100 takes one.
    let refused = room.admit(Lane::Route, due_in("b", 10, Duration::from_millis(900), now), now).unwrap_err();
    assert!(matches!(refused, InferenceError::TooLate { needed, .. } if needed == Duration::from_secs(1)), "{refused}");
    room.admit(Lane::Route, due_in("b", 10, Duration::from_secs(1), now), now).unwrap();
}

#[test]
fn what_is_slow_now_is_tried_again_when_nothing_else_is_to_do() {
    let (mut room, now) = (Room::new(config(100, 10_000)), Instant::now());
    let soon = Duration::from_millis(50);
    room.ran(1000, Duration::from_secs(1000));
    assert!(room.admit(Lane::Route, due_in("a", 100, soon, now), now).unwrap().is_empty());
    assert!(matches!(room.admit(Lane::Route, due_in("a", 100, soon, now), now), Err(InferenceError::TooLate { .. })));
    let batch = room.next().unwrap();
    // While it runs the machine is not idle.
    assert!(matches!(room.admit(Lane::Route, due_in("a", 100, soon, now), now), Err(InferenceError::TooLate { .. })));
    (0..60).for_each(|_| room.ran(batch.tokens, Duration::from_millis(10)));
    assert!(room.admit(Lane::Route, due_in("a", 100, soon, now), now).unwrap().is_empty());
}
