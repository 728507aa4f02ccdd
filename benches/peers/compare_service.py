#!/usr/bin/env python3
"""The whole service and ONNX Runtime, or PyTorch, on the same mails in turn, in one run: A B A B.

    python benches/peers/compare_service.py --postroom target/release/postroom --model encoder.onnx [--threads 1,2] [--rounds 5]
    python benches/peers/compare_service.py --postroom target/release/postroom --model models/minilm-l6-v2 # PyTorch

Ours is `postroom bench` with a closed loop of clients: reading, cleaning, tokenizing, the network and the decision. Theirs is
ONNX Runtime called directly on the token windows that `postroom bench --windows` wrote for these mails, nothing else: no mail is
read, no text tokenized. It is tried with one window a call (no padding) and with the windows of as many mails as there are
clients, sorted by length and padded in batches of 4 and 8; whichever was fastest in a first try is compared. Where --model is the
folder of an encoder, transformers' BertModel in f32 gets the same (needs torch and transformers).

Prints for each number of threads the ratio of mails a second and that of CPU time a mail (above 1: we are better), the median over
the rounds with the lowest and the highest.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time


def onnx_runtime(model, threads):
    import numpy as np
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    dtypes = {i.name: np.int32 if "int32" in i.type else np.int64 for i in session.get_inputs()}
    return lambda feed: session.run(None, {name: feed[name].astype(dtype) for name, dtype in dtypes.items()})


def pytorch(model, threads):
    import torch
    import transformers

    torch.set_num_threads(threads)
    encoder = transformers.BertModel.from_pretrained(model, add_pooling_layer=False, dtype=torch.float32).eval()

    def call(feed):
        with torch.inference_mode():
            # A mask of ones would keep attention off its fast path.
            padded = not feed["attention_mask"].all()
            given = {name: torch.from_numpy(values) for name, values in feed.items() if padded or name != "attention_mask"}
            encoder(**given)

    return call


def serve(model, windows_file, threads, clients):
    """Slave: for each line `BATCH MAILS` on standard input runs the windows of that many mails; answers wall and CPU seconds."""
    import numpy as np

    call = pytorch(model, threads) if pathlib.Path(model).is_dir() else onnx_runtime(model, threads)
    mails = [json.loads(line)["windows"] for line in open(windows_file)]

    def forward(windows):
        longest = max(map(len, windows))
        ids = np.zeros((len(windows), longest), np.int64)
        mask = np.zeros_like(ids)
        for row, window in enumerate(windows):
            ids[row, : len(window)] = window
            mask[row, : len(window)] = 1
        call({"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)})

    def run(batch, n_mails):
        for start in range(0, n_mails, clients):
            waiting = [window for mail in mails[start : min(start + clients, n_mails)] for window in mail]
            waiting.sort(key=len)
            for first in range(0, len(waiting), batch):
                forward(waiting[first : first + batch])

    for line in sys.stdin:
        batch, n_mails = map(int, line.split())
        wall, cpu = time.perf_counter(), time.process_time()
        run(batch, min(n_mails, len(mails)))
        print(json.dumps([time.perf_counter() - wall, time.process_time() - cpu]), flush=True)


class Peer:
    def __init__(self, model, windows, threads, clients):
        command = [sys.executable, __file__, "--serve", model, windows, str(threads), str(clients)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)

    def run(self, batch, n_mails):
        self.process.stdin.write(f"{batch} {n_mails}\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())


def spread(values):
    return f"{statistics.median(values):.2f} ({min(values):.2f} .. {max(values):.2f})"


def main():
    if sys.argv[1:2] == ["--serve"]:
        model, windows, threads, clients = sys.argv[2:]
        return serve(model, windows, int(threads), int(clients))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--postroom", required=True, help="the program")
    parser.add_argument("--model", required=True, help="ONNX file, made by export_onnx.py, or the folder of an encoder for PyTorch")
    parser.add_argument("--mails", default="data/crumb/week.jsonl")
    parser.add_argument("--requests", type=int, default=96, help="mails of a round, from the first on")
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()

    def ours(threads, *more):
        command = [args.postroom, "bench", args.mails, "--requests", str(args.requests), "--clients", str(args.clients)]
        command += ["--threads", str(threads), "--warm-up", "16", "--json", *more]
        result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True)
        return json.loads(result.stdout)["levels"][0]

    name = "PyTorch" if pathlib.Path(args.model).is_dir() else "ONNX Runtime"
    with tempfile.TemporaryDirectory() as folder:
        windows = str(pathlib.Path(folder) / "windows.jsonl")
        ours(1, "--windows", windows)
        for threads in map(int, args.threads.split(",")):
            theirs = Peer(args.model, windows, threads, args.clients)
            theirs.run(1, 16)
            tried = {batch: theirs.run(batch, args.requests)[1] for batch in (1, 4, 8)}
            batch = min(tried, key=tried.get)
            rates, times, share = [], [], []
            for _ in range(args.rounds):
                level = ours(threads)
                wall, cpu = theirs.run(batch, args.requests)
                rates.append(level["mails_per_s"] / (args.requests / wall))
                times.append(cpu / args.requests * 1e3 / level["cpu_ms_per_mail"])
                share.append(level["cpu_ms_per_mail"])
            theirs.process.stdin.close()
            tries = ", ".join(f"{batch}: {seconds / args.requests * 1e3:.1f}" for batch, seconds in tried.items())
            print(f"{threads} threads, {args.clients} clients, {args.requests} mails a round, {args.rounds} rounds")
            print(f"  {name}, CPU ms a mail by windows a call: {tries}; compared with {batch}")
            print(f"  mails/s, ours / {name}'s {spread(rates)}")
            print(f"  CPU a mail, {name}'s / ours {spread(times)}; ours {spread(share)} ms")


if __name__ == "__main__":
    main()
