"""Writes the float64 reference of the shipped encoder: tests/fixtures/reference/encoder.safetensors and encoder.json.

    pip install numpy safetensors tokenizers
    python3 tests/reference/encoder_numbers.py

For each text: its ids, last hidden states and attention maps; of long texts only some rows, so that the file stays small.
"""
import json
import os

import numpy as np
from safetensors.numpy import save_file
from tokenizers import Tokenizer

from bert_reference import Bert

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
MODEL = os.path.join(ROOT, "models", "minilm-l6-v2")
OUT = os.path.join(ROOT, "tests", "fixtures", "reference")
LENGTHS = [1, 2, 3, 5, 9, 16, 31, 64, 100, 129, 200, 256, 333, 512]


def long_text():
    with open(os.path.join(ROOT, "data", "crumb", "train.jsonl"), encoding="utf-8") as lines:
        mails = [json.loads(line) for line in lines]
    longest = max(mails, key=lambda mail: len(mail["body"]))
    return longest["subject"] + " " + longest["body"]


def rows_of(tokens):
    """All rows of a short text, the ends and the middle of a longer one, the middle alone of the longest."""
    if tokens <= 16:
        return list(range(tokens))
    if tokens <= 129:
        return [0, tokens // 2, tokens - 1]
    return [tokens // 2]


def main():
    tokenizer = Tokenizer.from_file(os.path.join(MODEL, "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    encoder = Bert(MODEL)
    ids = tokenizer.encode(long_text()).ids
    assert len(ids) >= max(LENGTHS), len(ids)
    tensors, texts = {}, []
    for tokens in LENGTHS:
        # A text of one token is [CLS] alone; others keep [SEP] at their end.
        window = ids[: tokens - 1] + [102] if tokens > 1 else ids[:1]
        hidden, maps = encoder(window)
        rows = rows_of(tokens)
        # safetensors writes memory as it lies: indexing leaves axes in another order.
        tensors[f"{tokens}.hidden"] = np.ascontiguousarray(hidden[rows], np.float32)
        tensors[f"{tokens}.maps"] = np.ascontiguousarray(np.stack(maps)[:, :, rows, :], np.float32)
        texts.append({"tokens": tokens, "input_ids": window, "rows": rows})
    os.makedirs(OUT, exist_ok=True)
    save_file(tensors, os.path.join(OUT, "encoder.safetensors"))
    eggless = "My eggless cake arrived cold. Can I get a refund for it?"
    tokenized = {"text": eggless, "ids": tokenizer.encode(eggless).ids}
    with open(os.path.join(OUT, "encoder.json"), "w", encoding="utf-8") as out:
        json.dump({"texts": texts, "tokenized": tokenized}, out)
        out.write("\n")


if __name__ == "__main__":
    main()
