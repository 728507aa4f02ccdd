#!/usr/bin/env python3
"""The service over HTTP and ONNX Runtime on the same mails in turn, in one run: A B A B.

    python benches/peers/compare_http.py --postroom target/release/postroom --model encoder.onnx [--rounds 5]
    python benches/peers/compare_http.py --postroom target/release/postroom --memory 20000

Ours is `postroom serve`: HTTP, reading, cleaning, tokenizing, the network, the decision. Theirs is ONNX Runtime called directly on
finished token windows (see compare_service.py). Prints

- mails a second of a closed loop of clients, ours / theirs;
- for one client and a mail of 128 tokens the median time of an answer, ours / theirs (below 1: we are faster);
- which share of a mail's CPU time is not the network's, with one thread;
- with `--memory N` instead: resident memory along N requests of mixed length.
"""

import argparse
import http.client
import json
import os
import pathlib
import re
import socket
import statistics
import subprocess
import tempfile
import threading
import time

from compare_service import Peer, spread

TICK = os.sysconf("SC_CLK_TCK")


class Service:
    """A running `postroom serve` on a free port."""

    def __init__(self, postroom, threads):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        command = [postroom, "serve", "--port", str(self.port), "--threads", str(threads)]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while not self.ready():
            if self.process.poll() is not None:
                raise SystemExit("the service did not start: run this from the project's root")
            time.sleep(0.05)

    def connection(self):
        return http.client.HTTPConnection("127.0.0.1", self.port)

    def ready(self):
        try:
            return self.get("/readyz")[0] == 200
        except OSError:
            return False

    def get(self, path):
        connection = self.connection()
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()

    def busy(self):
        """Seconds that the network has run."""
        return float(re.search(r"^postroom_model_busy_seconds_total (\S+)", self.get("/metrics")[1], re.M)[1])

    def cpu(self):
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / TICK

    def resident_mb(self):
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) * 1024 / 1e6

    def loop(self, bodies, clients):
        """Sends each body once, every client its next one when it has its answer; the seconds of each answer."""
        left, lock, times = iter(bodies), threading.Lock(), []

        def client():
            connection = self.connection()
            while True:
                with lock:
                    body = next(left, None)
                if body is None:
                    return
                start = time.perf_counter()
                connection.request("POST", "/v1/route", body, {"content-type": "application/json"})
                answer = connection.getresponse()
                text = answer.read()
                assert answer.status == 200, text
                times.append(time.perf_counter() - start)

        threads = [threading.Thread(target=client) for _ in range(clients)]
        start = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return time.perf_counter() - start, times

    def close(self):
        self.process.terminate()
        self.process.wait()


def body_of(mail):
    return json.dumps({"subject": mail.get("subject", ""), "text": mail["body"]})


def mail_of_tokens(service, tokens):
    """A mail that makes one window of so many tokens, the two special ones counted."""
    words = "the cake that we had ordered for our son came late and it was cold when we got it so we did not eat it at all".split()
    text = " ".join((words * 20)[: tokens - 2])
    connection = service.connection()
    connection.request("POST", "/v1/route", json.dumps({"text": text}), {"content-type": "application/json"})
    used = json.loads(connection.getresponse().read())["input"]["tokens_used"]
    assert used == tokens - 2, f"{used} tokens where {tokens - 2} were wanted"
    return json.dumps({"text": text})


def memory(args, mails):
    service = Service(args.postroom, args.threads)
    print(f"0 requests: {service.resident_mb():.0f} MB")
    step, done = max(args.memory // 20, 1), 0
    while done < args.memory:
        bodies = [body_of(mails[(done + i) % len(mails)]) for i in range(min(step, args.memory - done))]
        service.loop(bodies, args.clients)
        done += len(bodies)
        print(f"{done} requests: {service.resident_mb():.0f} MB", flush=True)
    service.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--postroom", required=True, help="the program")
    parser.add_argument("--model", help="ONNX file, made by export_onnx.py")
    parser.add_argument("--mails", default="data/crumb/week.jsonl")
    parser.add_argument("--requests", type=int, default=96, help="mails of a round, from the first on")
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--memory", type=int, metavar="N", help="only watch the memory along N requests")
    args = parser.parse_args()
    mails = [json.loads(line) for line in open(args.mails)]
    if args.memory:
        return memory(args, mails)
    bodies = [body_of(mail) for mail in mails[: args.requests]]
    service = Service(args.postroom, args.threads)
    with tempfile.TemporaryDirectory() as folder:
        windows, single = pathlib.Path(folder) / "windows.jsonl", pathlib.Path(folder) / "single.jsonl"
        command = [args.postroom, "bench", args.mails, "--requests", str(args.requests), "--json", "--windows", str(windows)]
        subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
        single.write_text(json.dumps({"windows": [list(range(1000, 1128))]}) + "\n")
        theirs = Peer(args.model, str(windows), args.threads, args.clients)
        one = Peer(args.model, str(single), args.threads, 1)
        tried = {batch: theirs.run(batch, args.requests)[0] for batch in (1, 4, 8)}
        batch = min(tried, key=tried.get)
        short = [mail_of_tokens(service, 128)] * 40
        service.loop(bodies, args.clients)
        rates, medians = [], []
        for _ in range(args.rounds):
            ours, _ = service.loop(bodies, args.clients)
            rates.append(theirs.run(batch, args.requests)[0] / ours)
            _, times = service.loop(short, 1)
            medians.append(statistics.median(times) / statistics.median(one.run(1, 1)[0] for _ in range(40)))
    print(f"{args.threads} threads, {args.requests} mails a round, {args.rounds} rounds; ONNX Runtime with {batch} windows a call")
    print(f"  {args.clients} clients, mails/s, ours / ONNX Runtime's {spread(rates)}")
    print(f"  one client, 128 tokens, median of an answer / median of a bare call {spread(medians)}")
    service.close()
    service = Service(args.postroom, 1)
    service.loop(bodies[:16], args.clients)
    shares = []
    for _ in range(args.rounds):
        cpu, busy = service.cpu(), service.busy()
        service.loop(bodies, args.clients)
        shares.append(100 * (1 - (service.busy() - busy) / (service.cpu() - cpu)))
    print(f"  not the network's, % of the CPU time of a mail, one thread: {spread(shares)}")
    service.close()


if __name__ == "__main__":
    main()
