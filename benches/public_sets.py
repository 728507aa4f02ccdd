#!/usr/bin/env python3
"""Trains and judges routers on public sets of labelled text, in their official splits; prints a row for each.

    cargo build --release
    python benches/public_sets.py DATASETS [--sets banking77,banking77-10,clinc150,it-tickets-47k,hint3] [--seeds 1] [--method auto]

DATASETS holds a folder for each set with train.jsonl and test.jsonl: lines with `text` and `label`. Texts that are labelled `oos` are
never trained on; they are the mail for nobody. Labels with a single text cannot be trained: texts to judge by that are labelled so
(`lost`) count as errors of the accuracy, and as nothing else. Only the standard library is needed.
"""
import argparse
import collections
import json
import pathlib
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent


def lines(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def write(path, rows):
    path.write_text("".join(json.dumps({"text": row["text"], "label": row["label"]}) + "\n" for row in rows), encoding="utf-8")
    return str(path)


def few(rows, count, seed):
    """So many texts of each label, drawn anew for each seed."""
    rows = rows[:]
    random.Random(seed).shuffle(rows)
    taken = {}
    return [row for row in rows if taken.setdefault(row["label"], []).append(0) or len(taken[row["label"]]) <= count]


def parts(datasets, name, seed):
    """(name, texts to train on, texts to judge by) of a set."""
    if name == "hint3":
        train, test = (lines(datasets / "hint3" / f"{part}.jsonl") for part in ("train", "test"))
        for bot in sorted({row["bot"] for row in train}):
            of_bot = [[row for row in rows if row["bot"] == bot] for rows in (train, test)]
            yield f"hint3 {bot}", *of_bot
        return
    folder = datasets / name.removesuffix("-10")
    train, test = lines(folder / "train.jsonl"), lines(folder / "test.jsonl")
    yield name, few(train, 10, seed) if name.endswith("-10") else train, test


def measure(args, name, train, test, seed, folder):
    texts = collections.defaultdict(set)
    for row in train:
        texts[row["label"]].add(row["text"].strip().lower())
    learnt = {label for label, different in texts.items() if len(different) > 1 and label != "oos"}
    known = [row for row in test if row["label"] in learnt]
    nobodys = [row for row in test if row["label"] == "oos"]
    lost = len(test) - len(known) - len(nobodys)
    data = write(folder / "train.jsonl", [row for row in train if row["label"] in learnt])
    # Beside the encoder, so that the router finds it.
    router = args.encoder.parent / f".public-set-{os.getpid()}"
    started = time.time()
    command = [args.program, "train", data, "--method", args.method, "--seed", str(seed), "--no-memory", "--encoder", str(args.encoder),
               "--out", str(router)]
    if args.config:
        command += ["--config", args.config]
    trained = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=None if args.verbose else subprocess.PIPE, text=True)
    if trained.returncode:
        sys.exit(f"{name}: {trained.stderr or 'see above'}")
    seconds = time.time() - started
    command = [args.program, "eval", write(folder / "test.jsonl", known), "--router", str(router), "--json"]
    if nobodys:
        command += ["--nobody", write(folder / "nobody.jsonl", nobodys)]
    try:
        got = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
        figures = json.loads((router / "router.json").read_text())["figures"]
    finally:
        shutil.rmtree(router)
    row = {"accuracy": 100 * (1 - (len(got["misrouted"]) + lost) / (got["mails"] + lost)), "ece": got["ece"], "alone": got["routed_alone"],
           "wrong alone": got["routed_alone_wrong"], "words alone, held out": 100 * figures["accuracy_words_alone"],
           "held out": 100 * figures["accuracy"], "minutes": seconds / 60}
    if lost:
        row["lost"] = lost
    if nobodys:
        nobody = got["nobody"]
        row |= {"auroc": nobody["auroc"], "oos recall": 100 * nobody["out_of_scope"] / nobody["mails"],
                "oos not alone": 100 * (1 - nobody["routed_alone"] / nobody["mails"])}
    return row


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("datasets", type=pathlib.Path)
    parser.add_argument("--sets", default="banking77,banking77-10,clinc150,it-tickets-47k,hint3")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--method", default="auto", choices=["auto", "frozen", "fine-tuned"])
    parser.add_argument("--config", help="settings of the training")
    parser.add_argument("--program", default=str(ROOT / "target/release/postroom"))
    parser.add_argument("--encoder", type=pathlib.Path, default=ROOT / "models/minilm-l6-v2")
    parser.add_argument("--verbose", action="store_true")
    args = parser.parse_args()
    for name in args.sets.split(","):
        rows = {}
        for seed in range(args.seeds):
            for part, train, test in parts(args.datasets, name, seed):
                with tempfile.TemporaryDirectory() as folder:
                    row = measure(args, part, train, test, seed, pathlib.Path(folder))
                rows.setdefault(part, []).append(row)
                print(f"  {part}, seed {seed}: {row}", flush=True)
        for part, measured in rows.items():
            def of(key):
                values = [row[key] for row in measured]
                spread = f" ({min(values):.4g} to {max(values):.4g})" if len(values) > 1 else ""
                return f"{key} {statistics.mean(values):.4g}{spread}"
            print(f"{part}: " + ", ".join(of(key) for key in measured[0]), flush=True)


if __name__ == "__main__":
    main()
