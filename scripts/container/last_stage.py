#!/usr/bin/env python3
"""Carries out the last stage of a Dockerfile in a directory that already holds its base, without a container engine.

    scripts/container/last_stage.py DOCKERFILE ROOT BINARY

RUN runs in ROOT; COPY copies from the working tree, and whatever comes from another stage is BINARY. What the stage says about
running goes to standard output as JSON: env, user, workdir, entrypoint, cmd, healthcheck. An instruction that is not known
here is an error, so that this file cannot fall behind the Dockerfile without a word.
"""
import json
import pathlib
import re
import shlex
import shutil
import subprocess
import sys


def instructions(text):
    """Pairs of an instruction and its arguments, continued lines joined, comments left out."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    for line in "\n".join(lines).replace("\\\n", " ").splitlines():
        if line.strip():
            word, _, rest = line.strip().partition(" ")
            yield word.upper(), rest.strip()


def last_stage(text):
    stage = []
    for word, rest in instructions(text):
        stage = [] if word == "FROM" else [*stage, (word, rest)]
    return stage


def copy(rest, root, binary):
    words = shlex.split(rest)
    from_stage = [word for word in words if word.startswith("--from=")]
    *sources, target = [word for word in words if not word.startswith("--")]
    if len(sources) != 1:
        sys.exit(f"last_stage: COPY with one source only: {rest}")
    place = root / target.lstrip("/")
    place.parent.mkdir(parents=True, exist_ok=True)
    source = pathlib.Path(binary if from_stage else sources[0])
    if source.is_dir():
        shutil.copytree(source, place)
    else:
        shutil.copy(source, place)
    if from_stage:
        place.chmod(0o755)


def main(dockerfile, root, binary):
    root = pathlib.Path(root)
    image = {"env": {}, "user": "0", "workdir": "/", "entrypoint": [], "cmd": [], "healthcheck": []}
    for word, rest in last_stage(pathlib.Path(dockerfile).read_text()):
        if word == "RUN":
            subprocess.run(["chroot", root, "/bin/sh", "-ec", rest], check=True)
        elif word == "COPY":
            copy(rest, root, binary)
        elif word == "ENV":
            image["env"].update(pair.split("=", 1) for pair in shlex.split(rest))
        elif word in ("USER", "WORKDIR"):
            image[word.lower()] = rest
        elif word in ("ENTRYPOINT", "CMD"):
            image[word.lower()] = json.loads(rest)
        elif word == "HEALTHCHECK":
            image["healthcheck"] = json.loads(re.sub(r"^.*?\bCMD\s+", "", rest))
        elif word not in ("ARG", "LABEL", "EXPOSE", "STOPSIGNAL", "VOLUME"):
            sys.exit(f"last_stage: {word} is not known")
    json.dump(image, sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:4])
