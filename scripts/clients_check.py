"""What real clients get from a running service: see scripts/clients-check."""

import sys

MAIL = "My eggless cake arrived cold. Can I get a refund for it?"
LATE = "Where is my order? It should have come on Friday."


def show(client, got):
    print(f"{client:36} {got}")


def hugging_face(url):
    from huggingface_hub import InferenceClient

    client = InferenceClient(model=url)
    best = client.text_classification(MAIL)
    show("huggingface_hub text_classification", [(one.label, round(one.score, 4)) for one in best[:2]])
    assert best[0].score >= best[1].score > 0
    one = client.text_classification(LATE, top_k=1, function_to_apply="sigmoid")
    show("  top_k=1, sigmoid", [(one.label, round(one.score, 4)) for one in one])
    assert len(one) == 1
    return best[0].label


def embeddings_inference(url, label):
    import requests

    info = requests.get(f"{url}/info", timeout=30).json()
    show("requests GET /info", f"{info['model_id']} {info['model_sha']}, {info['max_input_length']} tokens")
    batch = requests.post(f"{url}/predict", json={"inputs": [[MAIL], ["Order 12", LATE]]}, timeout=30).json()
    show("requests POST /predict", [one[0]["label"] for one in batch])
    assert batch[0][0]["label"] == label
    answer = requests.post(f"{url}/classify", json={"input": [MAIL, LATE]}, timeout=30).json()
    show("requests POST /classify", [(one["label"], one["num_classes"]) for one in answer["data"]])
    assert answer["data"][0]["label"] == label
    return info["model_id"]


def triton(url, model, label):
    import numpy
    import tritonclient.http as triton

    client = triton.InferenceServerClient(url=url.split("//", 1)[1])
    assert client.is_server_live() and client.is_server_ready() and client.is_model_ready(model)
    metadata = client.get_model_metadata(model)
    show("tritonclient get_model_metadata", f"{metadata['name']}, {[one['name'] for one in metadata['outputs']]}")
    texts = numpy.array([MAIL, LATE], dtype=object)
    for binary in (True, False):
        tensor = triton.InferInput("text", [len(texts)], "BYTES")
        tensor.set_data_from_numpy(texts, binary_data=binary)
        result = client.infer(model, inputs=[tensor], request_id="42")
        labels, scores = result.as_numpy("label"), result.as_numpy("score")
        probabilities = result.as_numpy("probabilities")
        show(f"tritonclient infer, binary={binary}", list(zip(labels.tolist(), scores.round(4).tolist())))
        assert result.get_response()["id"] == "42" and labels[0] == label
        assert probabilities.shape[0] == 2 and abs(probabilities[0].sum() - 1) < 1e-4
    try:
        client.get_model_metadata("another")
        raise AssertionError("an unknown model was found")
    except triton.InferenceServerException as error:
        show("tritonclient, unknown model", error)


def generated(url):
    """A client generated from the document: every operation that there is, with its own example, and what it makes of errors."""
    import importlib
    import json
    import pathlib
    import pkgutil
    import typing
    import urllib.request

    (package,) = [path.parent.name for path in pathlib.Path(sys.path[1]).glob("*/client.py")] or [None]
    client = importlib.import_module(package).Client(base_url=url, timeout=60)
    api = importlib.import_module(f"{package}.api")
    found = pkgutil.walk_packages(api.__path__, f"{package}.api.")
    modules = {name.rsplit(".", 1)[1]: importlib.import_module(name) for _, name, leaf in found if not leaf}
    with urllib.request.urlopen(f"{url}/openapi.json", timeout=30) as answer:
        paths = json.load(answer)["paths"]
    operations = [(path, spec) for path, methods in paths.items() for spec in methods.values()]
    missing = {spec["operationId"] for _, spec in operations} - set(modules)
    assert not missing, f"not generated: {missing}"
    show("openapi-python-client", f"{len(operations)} operations, all of them generated")

    router = modules["routers"].sync(client=client).routers[0]
    parts = {"{router}": ("router", router.name), "{name}": ("name", router.name), "{version}": ("version", router.version)}

    def body_of(name, example):
        """The example as the type that the client has for it."""
        kinds = typing.get_type_hints(modules[name].sync_detailed)["body"]
        (kind,) = [kind for kind in typing.get_args(kinds) or [kinds] if hasattr(kind, "from_dict")]
        return kind.from_dict(example)

    asked = 0
    for path, spec in operations:
        name, arguments = spec["operationId"], dict(value for part, value in parts.items() if part in path)
        content = spec.get("requestBody", {}).get("content", {}).get("application/json")
        if content:
            arguments["body"] = body_of(name, content["example"])
        answer = modules[name].sync_detailed(client=client, **arguments)
        assert answer.status_code == 200, f"{name}: {answer}"
        if "application/json" in spec["responses"]["200"]["content"]:
            assert answer.parsed is not None, f"{name}: {answer}"
        asked += 1
    show("  asked with their examples", asked)

    def route(**mail):
        return modules["route"].sync(client=client, body=body_of("route", mail))

    decisions = [route(text=MAIL), route(text=""), route(text=MAIL, headers={"Auto-Submitted": "auto-replied"})]
    show("  decisions", [str(decision.decision) for decision in decisions])
    assert [str(decision.decision) for decision in decisions][1:] == ["needs_human", "not_for_a_queue"]
    brief = modules["route"].RouteExplain("brief")
    why = modules["route"].sync(client=client, body=body_of("route", {"text": MAIL}), explain=brief)
    assert why.explanation.available is True
    for name, body, told in (
        ("route", {"subject": None}, lambda error: error.code),
        ("predict", {"inputs": []}, lambda error: error.error_type),
        ("classify", {"input": MAIL, "model": "another"}, lambda error: error.error.type_),
    ):
        error = modules[name].sync_detailed(client=client, body=body_of(name, body))
        show(f"  {name} refused", f"{error.status_code.value} {type(error.parsed).__name__} {told(error.parsed)}")
    error = modules["protocol_infer"].sync_detailed("another", client=client, body=body_of("protocol_infer", {"inputs": []}))
    assert error.status_code == 404 and error.parsed.error


def main():
    url, what = sys.argv[1].rstrip("/"), sys.argv[2]
    if what == "--generated":
        return generated(url)
    label = hugging_face(url)
    model = embeddings_inference(url, label)
    triton(url, what or model, label)


main()
