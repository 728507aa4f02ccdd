//! Figures counted again by other means, and what a report must not hold.

use super::*;

fn queues() -> Vec<Queue> {
    ["allergy", "late", "refunds"].map(|id| Queue::new(id, id)).into()
}

/// 240 mails whose margins fall, every seventh wrong, some with a place and a length.
fn mails() -> Vec<JudgedMail> {
    let mail = |index: usize| {
        let target = if index.is_multiple_of(20) { 0 } else { 1 + index % 2 };
        let likeliest = if index % 7 == 6 { (target + 1) % 3 } else { target };
        let mut logits = vec![0.0, 0.3, -0.2];
        logits[likeliest] += 4.0 - 3.5 * index as f32 / 240.0;
        JudgedMail {
            id: format!("m{index}"),
            target,
            logits,
            baseline: Some(if index % 5 == 4 {
                vec![1.0, 0.0, 0.0]
            } else {
                (0..3).map(|q| f32::from(q == target)).collect()
            }),
            tokens: 40 * (index % 40),
            decisive_position: index.is_multiple_of(2).then_some(index as f64 / 240.0),
            subject: format!("subject of {index}"),
        }
    };
    (0..240).map(mail).collect()
}

fn report_of(mails: &[JudgedMail]) -> Report {
    report_at(mails, &queues(), None)
}

fn report_at(mails: &[JudgedMail], queues: &[Queue], threshold: Option<f64>) -> Report {
    let calibration = Calibration::new(0.8, 0.9);
    Report::new(&ReportInput {
        router: "test",
        data: "mail.jsonl",
        origin: Origin::Labelled,
        queues,
        calibration: &calibration,
        threshold,
        mails,
    })
}

pub(super) fn report_with_subject(subject: &str) -> Report {
    let mut mails = mails();
    mails.iter_mut().for_each(|mail| mail.subject = subject.to_owned());
    report_of(&mails)
}

/// The predictions as a reader of report.json finds them.
fn written() -> serde_json::Value {
    serde_json::from_str(&report_of(&mails()).to_json().unwrap()).unwrap()
}

#[test]
fn accuracy_confusion_and_calibration_error_can_be_counted_again_from_the_predictions() {
    let report = written();
    let ids: Vec<&str> = report["queues"].as_array().unwrap().iter().map(|q| q["queue"].as_str().unwrap()).collect();
    let predictions = report["predictions"].as_array().unwrap();
    let mut confusion = vec![vec![0u64; 3]; 3];
    let mut bins = vec![(0.0, 0.0); 15];
    let (mut right, mut alone, mut alone_wrong) = (0u64, 0u64, 0u64);
    for line in predictions {
        let place = |key: &str| ids.iter().position(|id| line[key] == **id).unwrap();
        let (target, predicted, confidence) =
            (place("target"), place("predicted"), line["confidence"].as_f64().unwrap());
        confusion[target][predicted] += 1;
        right += u64::from(target == predicted);
        // Right-closed bins, found by walking instead of by rounding.
        let bin = (0..15).find(|bin| confidence <= f64::from(bin + 1) / 15.0).unwrap() as usize;
        bins[bin].0 += confidence;
        bins[bin].1 += f64::from(u8::from(target == predicted));
        if confidence >= 0.9 {
            alone += 1;
            alone_wrong += u64::from(target != predicted);
        }
    }
    assert_eq!(report["accuracy"]["hits"], right);
    assert_eq!(report["accuracy"]["of"], 240);
    assert_eq!(report["confusion"], serde_json::json!(confusion));
    let ece = bins.iter().map(|(sum, right): &(f64, f64)| (sum - right).abs()).sum::<f64>() / 240.0;
    assert!((report["trust"]["ece"].as_f64().unwrap() - ece).abs() < 1e-9);
    assert_eq!(
        (report["alone"]["routed"]["hits"].as_u64(), report["alone"]["wrong"]["hits"].as_u64()),
        (Some(alone), Some(alone_wrong))
    );
}

#[test]
fn a_threshold_of_the_settings_is_what_is_counted_and_shown() {
    let mails = mails();
    let report = report_at(&mails, &queues(), Some(0.975));
    let sure = report.predictions.iter().filter(|mail| mail.confidence >= 0.975).count();
    assert!(sure > 0 && report_of(&mails).alone.routed.hits > sure);
    assert_eq!((report.alone.routed.hits, report.alone.threshold), (sure, 0.975));
    let page = html::page(&report);
    assert!(page.contains("the choice of the settings (threshold 0.975)"), "{page}");
    assert!(html::page(&report_of(&mails)).contains("the router's choice (common threshold 0.900)"));
}

#[test]
fn a_queue_that_is_only_suggested_stays_closed_whatever_the_threshold() {
    let [allergy, late, refunds]: [Queue; 3] = queues().try_into().unwrap();
    let queues = [allergy, Queue { suggest_only: true, ..late }, refunds];
    let report = report_at(&mails(), &queues, Some(0.0));
    let alone =
        |queue: &str| report.predictions.iter().filter(|mail| mail.predicted == queue && mail.routed_alone).count();
    assert!(alone("late") == 0 && alone("refunds") > 0);
}

#[test]
fn precision_recall_and_macro_f1_follow_from_the_confusion() {
    let report = report_of(&mails());
    let mut sum = 0.0;
    for (index, queue) in report.queues.iter().enumerate() {
        let hits = report.confusion[index][index];
        assert_eq!((queue.recall.hits, queue.recall.of), (hits, report.confusion[index].iter().sum()));
        assert_eq!(
            (queue.precision.hits, queue.precision.of),
            (hits, report.confusion.iter().map(|row| row[index]).sum())
        );
        let (p, r) = (queue.precision.rate.unwrap(), queue.recall.rate.unwrap());
        assert!((queue.f1.unwrap() - 2.0 * p * r / (p + r)).abs() < 1e-12);
        assert!(queue.recall.low <= r && r <= queue.recall.high);
        sum += queue.f1.unwrap();
    }
    assert!((report.macro_f1 - sum / 3.0).abs() < 1e-12);
}

#[test]
fn the_baseline_stands_beside_the_router_unless_a_mail_has_none() {
    let mut mails = mails();
    let right = mails.iter().enumerate().filter(|(index, mail)| index % 5 != 4 || mail.target == 0).count();
    assert_eq!(report_of(&mails).baseline.unwrap().hits, right);
    mails[3].baseline = None;
    assert!(report_of(&mails).baseline.is_none());
}

#[test]
fn slices_hold_every_mail_once() {
    let report = report_of(&mails());
    assert_eq!(report.by_length.iter().map(|slice| slice.accuracy.of).sum::<usize>(), 240);
    assert_eq!(report.by_position.iter().map(|slice| slice.accuracy.of).sum::<usize>(), 120);
    assert_eq!(report.by_length[0].name, "0 to 128 tokens");
    let mut mails = mails();
    mails.iter_mut().for_each(|mail| mail.decisive_position = None);
    assert!(report_of(&mails).by_position.is_empty());
}

#[test]
fn the_surest_mistakes_come_first_and_suspects_stand_by_queue() {
    let report = report_of(&mails());
    assert_eq!(report.worst.len(), 20);
    assert!(report.worst.windows(2).all(|pair| pair[0].confidence >= pair[1].confidence));
    assert!(report.suspects.iter().filter(|mail| mail.target == "late").count() == 5);
    assert!(report.suspects.iter().all(|mail| mail.loss > 0.0 && mail.target != mail.predicted));
}

#[test]
fn the_pair_mistaken_most_often_is_the_first_to_merge() {
    let report = report_of(&mails());
    let merge = &report.merges[0];
    let mistaken = merge.mistaken.iter().sum::<usize>();
    assert!((merge.gain - mistaken as f64 / 240.0).abs() < 1e-12);
    assert!(report.merges.iter().all(|other| other.mistaken.iter().sum::<usize>() <= mistaken));
}

#[test]
fn skew_and_queues_without_mail_are_warned_of() {
    assert!(report_of(&mails()).warnings.is_empty(), "{:?}", report_of(&mails()).warnings);
    let mut few: Vec<JudgedMail> = mails().into_iter().filter(|mail| mail.target != 0).collect();
    assert!(report_of(&few).warnings[0].contains("No mail belongs to allergy"));
    few.extend(mails().into_iter().filter(|mail| mail.target == 0).take(2));
    assert!(report_of(&few).warnings[0].contains("allergy has 2"), "{:?}", report_of(&few).warnings);
}

#[test]
fn no_subject_stands_in_the_json() {
    let report = report_with_subject("a subject to be found");
    assert!(!report.to_json().unwrap().contains("a subject to be found"));
    assert!(html::page(&report).contains("a subject to be found"));
}

#[test]
fn mail_that_does_not_fit_is_left_out_with_a_warning_and_no_mail_is_no_panic() {
    let mut mails = mails();
    mails[0].target = 9;
    mails[1].logits.pop();
    mails[2].logits[0] = f32::NAN;
    let report = report_of(&mails);
    assert_eq!(report.mails, 238);
    assert!(report.warnings[0].contains("2 mails were left out"));
    assert!(report.to_json().is_ok() && html::page(&report).contains("</html>"));
    let empty = report_of(&[]);
    assert!(empty.accuracy.rate.is_none() && html::page(&empty).contains("</html>"));
}

#[test]
fn both_files_are_written_and_replaced_whole() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("new/report");
    write_report(&target, &report_of(&mails())).unwrap();
    write_report(&target, &report_of(&mails())).unwrap();
    let mut names: Vec<_> = std::fs::read_dir(&target).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["report.html", "report.json"]);
    let error = write_report(&target.join("report.json"), &report_of(&mails())).unwrap_err();
    assert!(error.to_string().contains("cannot write"), "{error}");
}
