#!/usr/bin/env python3
"""Names that must not drift apart: settings, metrics, alerts, problem codes, files, in what deploys postroom and in what it is.

    scripts/deploy/names.py

Every POSTROOM_ variable is a setting; every metric of alerts and dashboard is one that the service has; every alert is explained
in docs/operations.md; every problem code there is one that the service answers with; every file that the source includes is one
that the Dockerfiles copy.
"""
import pathlib
import re
import sys
import tomllib

OPERATIONS = pathlib.Path("docs/operations.md")
DEPLOYED = ["Dockerfile", "Dockerfile.cuda", "docker-compose.yml", "deploy/**/*.y*ml", "deploy/**/*.toml", "deploy/**/*.service", "deploy/**/*.example"]
QUERIES = ["deploy/prometheus/alerts.yml", "deploy/grafana/postroom.json", "deploy/kubernetes/**/*.yaml"]


def texts(patterns):
    for pattern in patterns:
        for path in sorted(pathlib.Path().glob(pattern)):
            yield path, path.read_text()


def settings():
    """The environment's name of each setting, those that are unset by default included."""
    text = re.sub(r"(?m)^#(?=[a-z_]+ = )", "", pathlib.Path("config/default.toml").read_text())

    def names(table, path):
        for key, value in table.items():
            if isinstance(value, dict):
                yield from names(value, [*path, key])
            else:
                yield "_".join(["POSTROOM", *path, key]).upper()

    return {"POSTROOM_CONFIG", *names(tomllib.loads(text), [])}


def metrics():
    """The names registered in the source, and what the text format makes of them."""
    source = "\n".join(path.read_text() for path in pathlib.Path("src/server/metrics").rglob("*.rs"))
    names = set(re.findall(r'"([a-z]+(?:_[a-z]+)*)"', source))
    stems = {f"postroom_{name}{unit}" for name in names for unit in ("", "_seconds")} | {name for name in names if name.startswith("process_")}
    return stems | {stem + end for stem in stems for end in ("_total", "_bucket", "_sum", "_count")}


def included():
    """Source files with the files that they compile in. What only documentation tests see is not built into an image."""
    for path in pathlib.Path("src").rglob("*.rs"):
        text = re.sub(r"#\[cfg\(doctest\)\]\s*#\[doc = include_str!.*", "", path.read_text())
        for name in re.findall(r'include_(?:str|bytes)!\(\s*"([^"]+)"', text):
            yield path, (path.parent / name).resolve().relative_to(pathlib.Path().resolve())


def main():
    faults = []
    known = settings()
    for path, text in texts(DEPLOYED):
        # `POSTROOM_...` and its like in comments are no names.
        for name in sorted(set(re.findall(r"\bPOSTROOM_[A-Z_]+\b(?!\.\.)", text)) - known):
            if not name.endswith("_"):
                faults.append(f"{path}: {name} is no setting")
    has = metrics()
    for path, text in texts(QUERIES):
        for name in sorted(set(re.findall(r"\b(?:postroom|process)_[a-z]+_[a-z_]+\b", text)) - has):
            faults.append(f"{path}: the service has no metric {name}")
    manual = OPERATIONS.read_text()
    for alert in re.findall(r"(?m)^\s*- alert: (\w+)", pathlib.Path("deploy/prometheus/alerts.yml").read_text()):
        if f"### {alert}\n" not in manual:
            faults.append(f"{OPERATIONS}: no section about the alert {alert}")
    server = "\n".join(path.read_text() for path in pathlib.Path("src/server").rglob("*.rs"))
    table = manual[manual.index("## Problem codes") :].split("\n## ")[0]
    for code in re.findall(r"(?m)^\| `(\w+)`", table):
        if f'"{code}"' not in server:
            faults.append(f"{OPERATIONS}: the service answers with no problem {code}")
    for dockerfile in ("Dockerfile", "Dockerfile.cuda"):
        copied = set(re.findall(r"(?m)^COPY (\w+) \w+$", pathlib.Path(dockerfile).read_text()))
        for path, file in included():
            if file.parts[0] not in copied:
                faults.append(f"{path} includes {file}, which {dockerfile} does not copy")
    for fault in faults:
        print(fault, file=sys.stderr)
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
