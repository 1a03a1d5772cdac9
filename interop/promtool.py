"""Prometheus' `promtool`, installed or from Debian's package, which is unpacked into `.cache`."""

from __future__ import annotations

import functools
import shutil
import subprocess
from pathlib import Path

from rivals.apache_kafka import ROOT
from rivals.one_at_a_time import one_at_a_time

HOME = ROOT / ".cache" / "prometheus"
UNPACKED = HOME / "usr" / "bin" / "promtool"
PATIENCE = 120.0


@functools.cache
def find_promtool() -> Path | None:
    """Return the program, or None if there is none and apt cannot download it."""
    installed = shutil.which("promtool")
    if installed is not None:
        return Path(installed)
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        return None
    with one_at_a_time(HOME):
        HOME.mkdir(parents=True, exist_ok=True)
        if not UNPACKED.exists():
            download()
    return UNPACKED if UNPACKED.exists() else None


def download() -> None:
    """Download and unpack the package; a failure leaves no program."""
    try:
        subprocess.run(
            ["apt-get", "download", "prometheus"], cwd=HOME, capture_output=True, timeout=PATIENCE, check=True
        )
        for package in HOME.glob("prometheus_*.deb"):
            subprocess.run(["dpkg-deb", "-x", package.name, "."], cwd=HOME, timeout=PATIENCE, check=True)
            package.unlink()
    except (OSError, subprocess.SubprocessError):
        return
