#!/usr/bin/env python3
"""Time of a fine-tuning step in PyTorch: the same encoder, adapters, head, mails and batches as `postroom train`.

    python benches/peers/train_torch.py --depth lora --seconds 60 [--threads 2]

prints tokens per second (content tokens of the mails, windows of 256 with a step of 192, padded to the longest of groups of
like length). benches/peers/train.py runs it and postroom in turn and prints the ratio. Needs torch, tokenizers, safetensors.
"""
import argparse
import json
import math
import pathlib
import random
import time

import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from tokenizers import Tokenizer

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
CLS, SEP, HEADS = 101, 102, 12
CAPACITY, STEP = 254, 192


class Linear(torch.nn.Module):
    def __init__(self, weights, name, rank):
        super().__init__()
        full = rank == 0
        self.weight = torch.nn.Parameter(weights[name + ".weight"].clone(), requires_grad=full)
        self.bias = torch.nn.Parameter(weights[name + ".bias"].clone(), requires_grad=full)
        self.rank = rank
        if rank:
            outputs, inputs = self.weight.shape
            self.down = torch.nn.Parameter(torch.randn(rank, inputs) / math.sqrt(inputs))
            self.up = torch.nn.Parameter(torch.zeros(outputs, rank))

    def forward(self, x):
        y = F.linear(x, self.weight, self.bias)
        return y + 2.0 * F.linear(F.linear(x, self.down), self.up) if self.rank else y


class LayerNorm(torch.nn.Module):
    def __init__(self, weights, name, trained):
        super().__init__()
        self.weight = torch.nn.Parameter(weights[name + ".weight"].clone(), requires_grad=trained)
        self.bias = torch.nn.Parameter(weights[name + ".bias"].clone(), requires_grad=trained)

    def forward(self, x):
        return F.layer_norm(x, self.weight.shape, self.weight, self.bias, 1e-12)


class Layer(torch.nn.Module):
    def __init__(self, weights, index, rank, dropout):
        super().__init__()
        at = f"encoder.layer.{index}."
        self.query = Linear(weights, at + "attention.self.query", rank)
        self.key = Linear(weights, at + "attention.self.key", rank)
        self.value = Linear(weights, at + "attention.self.value", rank)
        self.out = Linear(weights, at + "attention.output.dense", rank)
        self.norm = LayerNorm(weights, at + "attention.output.LayerNorm", rank == 0)
        self.wide = Linear(weights, at + "intermediate.dense", rank)
        self.narrow = Linear(weights, at + "output.dense", rank)
        self.last = LayerNorm(weights, at + "output.LayerNorm", rank == 0)
        self.dropout = dropout

    def forward(self, x, mask):
        windows, tokens, width = x.shape
        heads = lambda t: t.view(windows, tokens, HEADS, width // HEADS).transpose(1, 2)
        context = F.scaled_dot_product_attention(heads(self.query(x)), heads(self.key(x)), heads(self.value(x)), mask)
        context = self.out(context.transpose(1, 2).reshape(windows, tokens, width))
        x = self.norm(x + F.dropout(context, self.dropout))
        return self.last(x + F.dropout(self.narrow(F.gelu(self.wide(x))), self.dropout))


class Network(torch.nn.Module):
    def __init__(self, weights, queues, rank, dropout=0.1):
        super().__init__()
        fixed = lambda name: weights["embeddings." + name]
        self.words, self.positions = fixed("word_embeddings.weight"), fixed("position_embeddings.weight")
        self.types = fixed("token_type_embeddings.weight")
        self.norm = LayerNorm(weights, "embeddings.LayerNorm", False)
        self.layers = torch.nn.ModuleList(Layer(weights, index, rank, dropout) for index in range(6))
        width = self.words.shape[1]
        self.query = torch.nn.Parameter(torch.zeros(queues, width))
        self.values = torch.nn.Linear(width, queues)

    def encode(self, windows):
        longest = max(len(ids) for ids in windows)
        ids = torch.zeros(len(windows), longest, dtype=torch.long)
        mask = torch.zeros(len(windows), longest, dtype=torch.bool)
        for row, window in enumerate(windows):
            ids[row, : len(window)] = torch.tensor(window)
            mask[row, : len(window)] = True
        x = self.norm(self.words[ids] + self.positions[:longest] + self.types[0])
        for layer in self.layers:
            x = layer(x, mask[:, None, None, :])
        return [x[row, : len(window)] for row, window in enumerate(windows)]

    def forward(self, mails):
        """Attention pooling over all tokens of all windows; `mails` are lists of windows."""
        flat = [(mail, window) for mail, windows in enumerate(mails) for window in windows]
        flat.sort(key=lambda item: len(item[1]))
        groups, current = [], []
        for item in flat:
            # A new group where padding would cost more than a quarter.
            if current and len(item[1]) > 1.25 * len(current[0][1]) + 8:
                groups.append(current)
                current = []
            current.append(item)
        groups.append(current)
        states = [[] for _ in mails]
        for group in groups:
            for (mail, _), state in zip(group, self.encode([window for _, window in group])):
                states[mail].append(state)
        logits = []
        for state in states:
            state = torch.cat(state)
            weights = torch.softmax(state @ self.query.t(), 0)
            logits.append((weights * F.linear(state, self.values.weight)).sum(0) + self.values.bias)
        return torch.stack(logits)


def windows_of(ids):
    count = 1 + max(0, -(-(len(ids) - CAPACITY) // STEP))
    return [[CLS] + ids[i * STEP : i * STEP + CAPACITY] + [SEP] for i in range(count)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--depth", choices=["lora", "full"], default="lora")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--data", default=str(ROOT / "data/crumb/train.jsonl"))
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    weights = {name: tensor.float() for name, tensor in load_file(ROOT / "models/minilm-l6-v2/model.safetensors").items()}
    tokenizer = Tokenizer.from_file(str(ROOT / "models/minilm-l6-v2/tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    mails = []
    for line in open(args.data):
        mail = json.loads(line)
        ids = tokenizer.encode(mail["subject"], add_special_tokens=False).ids
        ids += tokenizer.encode(mail["body"], add_special_tokens=False).ids
        mails.append((ids, mail["queue"]))
    queues = sorted({queue for _, queue in mails})
    network = Network(weights, len(queues), 16 if args.depth == "lora" else 0)
    trained = [parameter for parameter in network.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=1e-5, weight_decay=0.01)
    random.Random(0).shuffle(mails)
    tokens, place, start, warm = 0, 0, None, 2
    while start is None or time.time() - start < args.seconds:
        if warm == 0 and start is None:
            start, tokens = time.time(), 0
        warm = max(0, warm - 1)
        batch = [mails[(place + i) % len(mails)] for i in range(16)]
        place += 16
        targets = torch.tensor([queues.index(queue) for _, queue in batch])
        loss = F.cross_entropy(network([windows_of(ids) for ids, _ in batch]), targets, label_smoothing=0.05)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(trained, 1.0)
        optimizer.step()
        tokens += sum(len(ids) for ids, _ in batch)
    print(json.dumps({"tokens_per_second": tokens / (time.time() - start), "depth": args.depth, "torch": torch.__version__}))


if __name__ == "__main__":
    main()
