#!/usr/bin/env python3
"""CPU time of one forward pass in ONNX Runtime, and of one OpenBLAS sgemm.

    python benches/peers/bench_ort.py encoder.onnx [--threads 1] [--shapes 1x32,1x128,1x256,16x128]

Prints the median over the rounds. With `--serve` it is the slave of a runner that alternates peers: for every line
`BATCHxTOKENS` on standard input it runs that shape for about `--seconds` and answers with the CPU milliseconds of a forward; for
the line `sgemm` it answers with numpy's rate in GFLOP/s at [512, 384] x [384, 1536].
"""

import argparse
import os
import sys
import time


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--shapes", default="1x32,1x128,1x256,16x128")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.5, help="least time of one measurement")
    parser.add_argument("--serve", action="store_true")
    args = parser.parse_args()
    # Read by OpenBLAS when numpy loads it.
    os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = str(args.threads)
    import numpy as np
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = args.threads
    options.inter_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    session = onnxruntime.InferenceSession(args.model, options, providers=["CPUExecutionProvider"])
    names = [i.name for i in session.get_inputs()]
    dtypes = {i.name: np.int32 if "int32" in i.type else np.int64 for i in session.get_inputs()}

    def forward(shape):
        batch, tokens = map(int, shape.split("x"))
        ids = 1000 + np.arange(batch * tokens).reshape(batch, tokens) * 7919 % 28000
        feed = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        feed = {n: feed[n].astype(dtypes[n]) for n in names}
        return lambda: session.run(None, feed)

    left, right = np.ones((512, 384), np.float32), np.ones((384, 1536), np.float32)
    result = np.empty((512, 1536), np.float32)

    def seconds_of(call):
        """CPU seconds of one call, all threads together, warm."""
        call()
        calls, start = 0, time.process_time()
        while True:
            call()
            calls += 1
            elapsed = time.process_time() - start
            if elapsed >= args.seconds:
                return elapsed / calls

    def measure(line):
        if line == "sgemm":
            return 2 * 512 * 384 * 1536 / seconds_of(lambda: np.matmul(left, right, out=result)) / 1e9
        return seconds_of(forward(line)) * 1e3

    if args.serve:
        for line in sys.stdin:
            print(measure(line.strip()), flush=True)
        return
    for shape in args.shapes.split(","):
        times = sorted(measure(shape) for _ in range(args.rounds))
        print(f"{shape}: {times[len(times) // 2]:.2f} ms CPU (from {times[0]:.2f} to {times[-1]:.2f})")


if __name__ == "__main__":
    main()
