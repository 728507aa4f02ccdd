#!/usr/bin/env python3
"""Our encoder and ONNX Runtime in turn, in one run: A B A B, CPU time of one thread.

    cargo build --release --bench encoder_peer   # prints where the program is
    python benches/peers/compare.py --ours target/release/deps/encoder_peer-HASH --model encoder.onnx [--rounds 15]

Both peers are started once, warmed and then asked in turn, each for about a second; on a busy machine the two of a round see the
same neighbours, so the ratio of a round is steadier than either time. Prints for each shape the medians, the median ratio
(ONNX Runtime's time / ours; above 1 we are faster) with its quartiles, our rate in GFLOP/s, and that rate against the fastest
matrix product of the same run: the larger of numpy's (OpenBLAS) and our own.
"""

import argparse
import pathlib
import shlex
import statistics
import subprocess
import sys

D_MODEL, D_FF, N_LAYERS = 384, 1536, 6


def operations(shape):
    """Multiplications and additions of the linear layers and of attention, as if no two were fused."""
    batch, tokens = map(int, shape.split("x"))
    per_token = N_LAYERS * (2 * (4 * D_MODEL**2 + 2 * D_MODEL * D_FF) + 4 * tokens * D_MODEL)
    return batch * tokens * per_token


class Peer:
    def __init__(self, command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline())


def quartiles(values):
    low, _, high = statistics.quantiles(values, n=4)
    return f"{statistics.median(values):.2f} ({low:.2f}..{high:.2f})"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ours", required=True, help="command that answers shapes on standard input with milliseconds")
    parser.add_argument("--model", required=True, help="ONNX file for ONNX Runtime")
    parser.add_argument("--shapes", default="1x32,1x128,1x256,16x128")
    parser.add_argument("--rounds", type=int, default=9)
    args = parser.parse_args()

    ours = Peer(shlex.split(args.ours))
    theirs = Peer([sys.executable, str(pathlib.Path(__file__).with_name("bench_ort.py")), args.model, "--serve"])
    shapes = args.shapes.split(",")
    times = {shape: [] for shape in shapes}
    products = []
    for _ in range(args.rounds):
        products.append((ours.ask("sgemm"), theirs.ask("sgemm")))
        for shape in shapes:
            times[shape].append((ours.ask(shape), theirs.ask(shape)))
    our_product, numpy_product = (statistics.median(p) for p in zip(*products))
    fastest = max(our_product, numpy_product)
    print(f"matrix product: ours {our_product:.1f}, numpy {numpy_product:.1f} GFLOP/s")
    for shape in shapes:
        a, b = (statistics.median(t) for t in zip(*times[shape]))
        rate = operations(shape) / a / 1e6
        ratio = quartiles([theirs / ours for ours, theirs in times[shape]])
        print(f"{shape:>7}: ours {a:.1f} ms, ONNX Runtime {b:.1f} ms, ratio {ratio}; {rate:.1f} GFLOP/s = {100 * rate / fastest:.0f} %")


if __name__ == "__main__":
    main()
