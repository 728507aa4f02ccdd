#!/usr/bin/env python3
"""Fine-tuning against PyTorch: the same encoder, adapters, head and mails, in turn in one run.

    cargo build --release
    python benches/peers/train.py --rounds 3 --seconds 60 [--depth lora|full]

Each round lets one side train for a while, then the other, and compares tokens per second. Needs torch, tokenizers, safetensors.
"""
import argparse
import json
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def ours(program, depth, seconds):
    """Tokens per second, from the progress lines of a training that is stopped."""
    with tempfile.TemporaryDirectory() as folder:
        config = pathlib.Path(folder) / "training.toml"
        config.write_text(f'method = "fine_tuned"\nc = [10.0]\n[fine_tuning]\ndepth = "{depth}"\nbackground = 0.0\n')
        command = [program, "train", str(ROOT / "data/crumb/train.jsonl"), "--group-from-id", "-", "--config", str(config),
                   "--encoder", str(ROOT / "models/minilm-l6-v2"), "--out", str(ROOT / "models/.peer")]
        process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, cwd=ROOT)
        first = last = None
        try:
            for line in process.stderr:
                found = re.match(r"fine-tuning.*: (\d+) of \d+", line)
                if not found:
                    continue
                now = (time.time(), int(found[1]))
                # The first line is not counted: caches and memory are cold until then.
                first, last = first or now, now
                if last[0] - first[0] >= seconds:
                    break
        finally:
            process.kill()
            process.wait()
        return (last[1] - first[1]) / (last[0] - first[0])


def theirs(depth, seconds):
    script = pathlib.Path(__file__).with_name("train_torch.py")
    out = subprocess.run([sys.executable, str(script), "--depth", depth, "--seconds", str(seconds)],
                         capture_output=True, text=True, check=True)
    return json.loads(out.stdout)["tokens_per_second"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", default=str(ROOT / "target/release/postroom"))
    parser.add_argument("--depth", choices=["lora", "full"], default="lora")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    ratios = []
    for number in range(args.rounds):
        a = ours(args.program, args.depth, args.seconds)
        b = theirs(args.depth, args.seconds)
        ratios.append(a / b)
        print(f"round {number + 1}: ours {a:.0f} tokens/s, PyTorch {b:.0f} tokens/s, time ratio {b / a:.2f}", flush=True)
    times = sorted(1 / ratio for ratio in ratios)
    print(f"time against PyTorch: {statistics.median(times):.2f} ({times[0]:.2f} .. {times[-1]:.2f})")


if __name__ == "__main__":
    main()
