#!/usr/bin/env python3
"""The queries of a Grafana dashboard as a rules file, so that promtool can read them.

    scripts/deploy/queries.py deploy/grafana/postroom.json > rules.yml
"""
import json
import re
import sys


def queries(node):
    """Every `expr` anywhere in the dashboard."""
    if isinstance(node, dict):
        if isinstance(node.get("expr"), str):
            yield node["expr"]
        for value in node.values():
            yield from queries(value)
    elif isinstance(node, list):
        for value in node:
            yield from queries(value)


def plain(query):
    """Grafana's variables replaced by values that Prometheus can read."""
    return re.sub(r"\$\{?(\w+)\}?", lambda name: "5m" if name[1].startswith("__") else "x", query)


def main(path):
    with open(path) as file:
        found = list(dict.fromkeys(map(plain, queries(json.load(file)))))
    if not found:
        sys.exit(f"queries: no query in {path}")
    rules = [{"record": f"dashboard:query_{number}:value", "expr": query} for number, query in enumerate(found)]
    # JSON is YAML.
    json.dump({"groups": [{"name": "dashboard", "rules": rules}]}, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1])
