"""Node and kafkajs from npm, for the members that are written in JavaScript."""

from __future__ import annotations

import functools
import shutil
import subprocess
from pathlib import Path

from rivals.apache_kafka import ROOT
from rivals.one_at_a_time import one_at_a_time

HOME = ROOT / ".cache" / "kafkajs"
VERSION = "2.2.4"
PATIENCE = 120.0


@functools.cache
def missing() -> str:
    """Return the reason why kafkajs is unavailable here, or "" if it is available.

    Installs it from npm if necessary.
    """
    if shutil.which("node") is None or shutil.which("npm") is None:
        return "there is no Node (node and npm) here, which kafkajs runs on: install it to have kafkajs tried as well"
    with one_at_a_time(HOME):
        return "" if (HOME / "node_modules" / "kafkajs").is_dir() else bring()


def bring() -> str:
    """Install kafkajs with npm. Returns the reason of a failure."""
    command = ["npm", "install", "--silent", "--prefix", str(HOME), f"kafkajs@{VERSION}"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    except subprocess.TimeoutExpired:
        return "npm does not bring kafkajs in two minutes: it is not tried"
    if done.returncode:
        return f"npm does not bring kafkajs, which is therefore not tried: {done.stderr.strip()}"
    return ""


def command(script: str, *words: str) -> tuple[list[str], dict[str, str]]:
    """Return the command that runs a script of interop/javascript, and the variables that its environment needs."""
    path = Path(__file__).with_name("javascript") / script
    return ["node", str(path), *words], {"NODE_PATH": str(HOME / "node_modules")}
