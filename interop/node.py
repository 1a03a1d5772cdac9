"""Node, kafkajs and registry clients from npm, for the programs that are written in JavaScript."""

from __future__ import annotations

import functools
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from rivals.apache_kafka import ROOT
from rivals.one_at_a_time import one_at_a_time

HOME = ROOT / ".cache" / "kafkajs"
VERSION = "2.2.4"
REGISTRY_HOME = ROOT / ".cache" / "schemaregistry"
REGISTRY_CLIENTS = {"@confluentinc/schemaregistry": "1.10.1", "@kafkajs/confluent-schema-registry": "3.8.0"}
PATIENCE = 120.0


@functools.cache
def missing() -> str:
    """Return the reason why kafkajs is unavailable here, or "" if it is available.

    Installs it from npm if necessary.
    """
    if shutil.which("node") is None or shutil.which("npm") is None:
        return "there is no Node (node and npm) here, which kafkajs runs on: install it to have kafkajs tried as well"
    with one_at_a_time(HOME):
        return "" if (HOME / "node_modules" / "kafkajs").is_dir() else bring(HOME, {"kafkajs": VERSION})


@functools.cache
def missing_registry_clients() -> str:
    """Return the reason why the registry clients are unavailable here, or "" after installing them if necessary."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        return "there is no Node (node and npm) here, which the registry clients run on: install it to have them tried"
    with one_at_a_time(REGISTRY_HOME):
        there = all((REGISTRY_HOME / "node_modules" / name).is_dir() for name in REGISTRY_CLIENTS)
        return "" if there else bring(REGISTRY_HOME, REGISTRY_CLIENTS)


def bring(home: Path, packages: Mapping[str, str]) -> str:
    """Install packages with npm. Returns the reason of a failure."""
    names = " and ".join(packages)
    wanted = [f"{name}@{version}" for name, version in packages.items()]
    command = ["npm", "install", "--silent", "--prefix", str(home), *wanted]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    except subprocess.TimeoutExpired:
        return f"npm does not bring {names} in two minutes: it is not tried"
    if done.returncode:
        return f"npm does not bring {names}, which is therefore not tried: {done.stderr.strip()}"
    return ""


def command(script: str, *words: str) -> tuple[list[str], dict[str, str]]:
    """Return the command that runs a script of interop/javascript, and the variables that its environment needs."""
    path = Path(__file__).with_name("javascript") / script
    return ["node", str(path), *words], {"NODE_PATH": f"{HOME / 'node_modules'}:{REGISTRY_HOME / 'node_modules'}"}
