#!/usr/bin/env python3
"""Holds rendered Kubernetes manifests against the API's schemas and against what we promise of every pod.

    scripts/deploy/kubernetes.py RENDERED.yaml

Schemas: strict, for the oldest and the newest API that we say we run on. Promises: no root, no writable root file system, no
capability, no token, whole cores, three probes, and more time to stop than the settings may take to drain.
"""
import sys
import tomllib

import kubernetes_validate
import yaml

VERSIONS = ["1.30", "1.37"]
# Kinds whose schemas belong to their operators.
FOREIGN = {"ServiceMonitor", "InferenceService"}
# What KServe adds to a pod's specification.
KSERVE = {"minReplicas", "maxReplicas", "scaleMetric", "scaleTarget", "labels", "annotations"}
PROBES = {"/livez", "/readyz", "/v2/health/ready"}


def pods(document):
    """(name, specification) of each pod that a document makes."""
    kind, name = document["kind"], document["metadata"]["name"]
    if kind == "Deployment":
        yield f"{kind} {name}", document["spec"]["template"]["spec"]
    elif kind == "InferenceService":
        predictor = document["spec"]["predictor"]
        yield f"{kind} {name}", {key: value for key, value in predictor.items() if key not in KSERVE}


def settings(documents):
    """The mounted settings of the service over the defaults."""
    texts = [text for document in documents if document["kind"] == "ConfigMap" for text in document["data"].values()]
    with open("config/default.toml", "rb") as file:
        server = tomllib.load(file)["server"]
    for table in map(tomllib.loads, texts):
        server |= table.get("server", {})
    return server


def mebibytes(quantity):
    factors = {"Mi": 1, "Gi": 1024}
    return int(quantity[:-2]) * factors[quantity[-2:]]


def broken_promises(pod, server):
    drain = (server["drain_delay_ms"] + server["drain_timeout_ms"]) / 1000
    # 250 MB for the models and what usual mail takes, then a body for each connection: docs/operations.md.
    needed = 250 + 1.2 * server["max_connections"] * server["max_body_bytes"] / 2**20
    security = pod.get("securityContext", {})
    yield "runAsNonRoot", security.get("runAsNonRoot") is True and security.get("runAsUser", 0) > 0
    yield "seccompProfile", security.get("seccompProfile", {}).get("type") == "RuntimeDefault"
    yield "automountServiceAccountToken", pod.get("automountServiceAccountToken") is False
    # Variables of a Service named postroom would be refused as unknown settings.
    yield "enableServiceLinks", pod.get("enableServiceLinks") is False
    yield f"terminationGracePeriodSeconds above {drain:g}", pod.get("terminationGracePeriodSeconds", 30) > drain
    for container in pod["containers"]:
        own = container.get("securityContext", {})
        yield "readOnlyRootFilesystem", own.get("readOnlyRootFilesystem") is True
        yield "allowPrivilegeEscalation", own.get("allowPrivilegeEscalation") is False
        yield "capabilities", own.get("capabilities", {}).get("drop") == ["ALL"]
        requests, limits = (container.get("resources", {}).get(part, {}) for part in ("requests", "limits"))
        yield "whole cores", requests.get("cpu") == limits.get("cpu") and str(limits.get("cpu")).isdigit()
        yield f"memory of {needed:.0f} MiB for max_connections", "memory" in requests and mebibytes(limits["memory"]) >= needed
        tag = container["image"].rpartition(":")[2]
        yield "image tag", ":" in container["image"] and tag != "latest"
        for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
            yield probe, container.get(probe, {}).get("httpGet", {}).get("path") in PROBES


def main(path):
    with open(path) as file:
        documents = [document for document in yaml.safe_load_all(file) if document]
    faults = []
    for document in documents:
        checked = [document]
        if document["kind"] in FOREIGN:
            metadata = {"name": document["metadata"]["name"]}
            checked = [{"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec} for _, spec in pods(document)]
        for version in VERSIONS:
            for each in checked:
                try:
                    kubernetes_validate.validate(each, version, strict=True)
                except kubernetes_validate.ValidationError as error:
                    faults.append(f"{each['kind']} {each['metadata']['name']}, API {version}: {error.message}")
        for name, pod in pods(document):
            faults += [f"{name}: {promise}" for promise, kept in broken_promises(pod, settings(documents)) if not kept]
    kinds = {document["kind"] for document in documents}
    faults += [f"no {kind}" for kind in ("NetworkPolicy", "ConfigMap") if kind not in kinds]
    for fault in faults:
        print(f"{path}: {fault}", file=sys.stderr)
    if faults:
        sys.exit(1)
    print(f"{len(documents)} documents of {path.rpartition('/')[2]} hold against the API of {' and '.join(VERSIONS)}")


if __name__ == "__main__":
    main(sys.argv[1])
