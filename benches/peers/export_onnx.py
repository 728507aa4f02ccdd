#!/usr/bin/env python3
"""Writes this repository's encoder as an ONNX graph that ONNX Runtime runs at its best.

    pip install onnx onnxruntime numpy safetensors sympy
    python benches/peers/export_onnx.py models/minilm-l6-v2 encoder.onnx

The graph is written in the plain operations of a PyTorch export and then given to ONNX Runtime's own transformer optimizer, which
must find the fused Attention, SkipLayerNormalization and BiasGelu: the script fails if it does not, or if the fused graph computes
something else. `--int8` also writes ONNX Runtime's dynamically quantized model (per channel, 7 bit weights) beside it.
"""

import argparse
import collections
import json
import pathlib

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from safetensors.numpy import load_file


class Graph:
    """Collects nodes and weights; every method adds one step and returns the name of its result."""

    def __init__(self, tensors):
        self.tensors = tensors
        self.nodes = []
        self.initializers = []

    def constant(self, name, value):
        self.initializers.append(numpy_helper.from_array(np.array(value, order="C"), name))
        return name

    def weight(self, name):
        return self.constant(name, self.tensors[name].astype(np.float32))

    def node(self, op, *inputs, **attributes):
        output = f"{op}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [output], name=output + "_node", **attributes))
        return output

    def linear(self, x, path):
        transposed = self.constant(f"{path}.weight_t", self.tensors[f"{path}.weight"].astype(np.float32).T)
        return self.node("Add", self.node("MatMul", x, transposed), self.weight(f"{path}.bias"))

    def layer_norm(self, x, path, eps):
        weight, bias = self.weight(f"{path}.weight"), self.weight(f"{path}.bias")
        return self.node("LayerNormalization", x, weight, bias, axis=-1, epsilon=eps)


def build(config, tensors):
    """The graph input_ids, attention_mask, token_type_ids -> last_hidden_state."""
    g = Graph(tensors)
    heads, d_model = config["num_attention_heads"], config["hidden_size"]
    d_k, eps = d_model // heads, config["layer_norm_eps"]

    def int64(name, values):
        return g.constant(name, np.array(values, dtype=np.int64))

    split_shape = int64("split_shape", [0, 0, heads, d_k])
    merge_shape = int64("merge_shape", [0, 0, d_model])
    sqrt_d_k = g.constant("sqrt_d_k", np.array(np.sqrt(d_k), dtype=np.float32))
    sqrt_2 = g.constant("sqrt_2", np.array(np.sqrt(2), dtype=np.float32))
    one = g.constant("one", np.array(1, dtype=np.float32))
    half = g.constant("half", np.array(0.5, dtype=np.float32))
    lowest = g.constant("lowest", np.array(np.finfo(np.float32).min, dtype=np.float32))

    length = g.node("Gather", g.node("Shape", "input_ids"), int64("axis_1", 1), axis=0)
    length = g.node("Unsqueeze", length, int64("axes_0", [0]))
    position_ids = g.node(
        "Slice", int64("all_positions", [list(range(config["max_position_embeddings"]))]), int64("slice_start", [0]), length, int64("slice_axis", [1])
    )
    words = g.node("Gather", g.weight("embeddings.word_embeddings.weight"), "input_ids", axis=0)
    types = g.node("Gather", g.weight("embeddings.token_type_embeddings.weight"), "token_type_ids", axis=0)
    positions = g.node("Gather", g.weight("embeddings.position_embeddings.weight"), position_ids, axis=0)
    x = g.node("Add", g.node("Add", words, types), positions)
    x = g.layer_norm(x, "embeddings.LayerNorm", eps)

    mask = g.node("Unsqueeze", g.node("Unsqueeze", "attention_mask", int64("axes_mask_1", [1])), int64("axes_mask_2", [2]))
    mask = g.node("Cast", mask, to=TensorProto.FLOAT)
    bias = g.node("Mul", g.node("Sub", one, mask), lowest)

    for layer in range(config["num_hidden_layers"]):
        path = f"encoder.layer.{layer}"

        def heads_of(name, perm):
            y = g.linear(x, f"{path}.attention.self.{name}")
            return g.node("Transpose", g.node("Reshape", y, split_shape), perm=perm)

        queries, keys, values = heads_of("query", [0, 2, 1, 3]), heads_of("key", [0, 2, 3, 1]), heads_of("value", [0, 2, 1, 3])
        scores = g.node("Add", g.node("Div", g.node("MatMul", queries, keys), sqrt_d_k), bias)
        context = g.node("MatMul", g.node("Softmax", scores, axis=-1), values)
        context = g.node("Reshape", g.node("Transpose", context, perm=[0, 2, 1, 3]), merge_shape)
        x = g.node("Add", g.linear(context, f"{path}.attention.output.dense"), x)
        x = g.layer_norm(x, f"{path}.attention.output.LayerNorm", eps)

        y = g.linear(x, f"{path}.intermediate.dense")
        erf = g.node("Add", g.node("Erf", g.node("Div", y, sqrt_2)), one)
        y = g.node("Mul", g.node("Mul", y, erf), half)
        x = g.node("Add", g.linear(y, f"{path}.output.dense"), x)
        x = g.layer_norm(x, f"{path}.output.LayerNorm", eps)

    g.nodes.append(helper.make_node("Identity", [x], ["last_hidden_state"]))
    ids = [helper.make_tensor_value_info(n, TensorProto.INT64, ["batch", "length"]) for n in ("input_ids", "attention_mask", "token_type_ids")]
    output = helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, ["batch", "length", d_model])
    graph = helper.make_graph(g.nodes, "encoder", ids, [output], g.initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def run(path, ids):
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    feed = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
    return session.run(None, {i.name: feed[i.name] for i in session.get_inputs()})[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("encoder", type=pathlib.Path, help="folder with config.json and model.safetensors")
    parser.add_argument("output", type=pathlib.Path, help="the ONNX file to write")
    parser.add_argument("--int8", action="store_true", help="also write OUTPUT with the suffix .int8.onnx")
    args = parser.parse_args()

    config = json.loads((args.encoder / "config.json").read_text())
    tensors = {k.removeprefix("bert."): v for k, v in load_file(args.encoder / "model.safetensors").items()}
    plain = args.output.with_suffix(".plain.onnx")
    onnx.save(build(config, tensors), plain)

    from onnxruntime.transformers import optimizer
    from onnxruntime.transformers.fusion_options import FusionOptions

    options = FusionOptions("bert")
    fused = optimizer.optimize_model(
        str(plain), model_type="bert", num_heads=config["num_attention_heads"], hidden_size=config["hidden_size"],
        optimization_options=options, opt_level=0, only_onnxruntime=False,
    )
    fused.save_model_to_file(str(args.output))
    counts = collections.Counter(node.op_type for node in fused.model.graph.node)
    print("fused graph:", dict(counts))
    layers = config["num_hidden_layers"]
    expected = {"Attention": layers, "SkipLayerNormalization": 2 * layers, "BiasGelu": layers}
    missing = {op: n for op, n in expected.items() if counts[op] != n}
    if missing:
        raise SystemExit(f"not fused: expected {missing}, found {dict(counts)}")

    ids = np.random.default_rng(0).integers(1000, config["vocab_size"], (2, 64), dtype=np.int64)
    want = run(plain, ids)
    error = np.abs(run(args.output, ids) - want).max()
    print(f"largest difference of the fused graph: {error:.1e}")
    if error > 1e-4:
        raise SystemExit("the fused graph computes something else")

    if args.int8:
        from onnxruntime.quantization import QuantType, quantize_dynamic

        target = args.output.with_suffix(".int8.onnx")
        quantize_dynamic(str(args.output), str(target), per_channel=True, reduce_range=True, weight_type=QuantType.QInt8,
                         op_types_to_quantize=["MatMul", "Attention"], extra_options={"MatMulConstBOnly": True, "DefaultTensorType": TensorProto.FLOAT})
        got, want = run(target, ids).mean(1), want.mean(1)
        cosine = (got * want).sum(-1) / np.linalg.norm(got, axis=-1) / np.linalg.norm(want, axis=-1)
        print(f"int8: smallest cosine of a pooled vector {cosine.min():.4f}")
    plain.unlink()


if __name__ == "__main__":
    main()
