"""The units of systemd: their commands do what the documentation says."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

UNITS = Path(__file__).parent.parent.parent / "packaging" / "systemd"
VOTERS = "1@127.0.0.1:9093:tL0aGBcvQGGFTs5-fXxnXg"
SETTINGS = """
process.roles=broker,controller
node.id=1
listeners=PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093
controller.listener.names=CONTROLLER
controller.quorum.bootstrap.servers=127.0.0.1:9093,127.0.0.2:9093
"""


def value_of(unit: str, name: str) -> str:
    """Return the value of a line of a unit."""
    found = re.search(f"^{name}=(.*)$", (UNITS / unit).read_text(encoding="utf-8"), re.MULTILINE)
    assert found is not None
    return found[1]


def run_format(folder: Path, cluster_id: str) -> subprocess.CompletedProcess[str]:
    """Run the command of the unit that formats, in a folder instead of the system's."""
    (folder / "server.properties").write_text(SETTINGS, encoding="utf-8")
    line = value_of("ottla-format@.service", "ExecStart").replace("%i", cluster_id)
    line = line.replace("$FORMAT_OPTIONS", f"--initial-controllers {VOTERS}").replace("/etc/ottla", str(folder))
    name, _, directory = value_of("ottla-format@.service", "Environment").partition("=")
    environment = os.environ | {name: directory.replace("/var/lib", str(folder))}
    command = [sys.executable, "-m", "ottla.cli.main", *shlex.split(line)[1:]]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_the_unit_for_clusters_formats_the_directory_of_the_service_once(tmp_path: Path) -> None:
    assert run_format(tmp_path, "first-Cluster_1").returncode == 0
    written = (tmp_path / "ottla" / "meta.properties").read_text()
    again = run_format(tmp_path, "first-Cluster_1")
    assert "cluster.id=first-Cluster_1\n" in written
    assert again.returncode == 0, again.stderr
    assert (tmp_path / "ottla" / "meta.properties").read_text() == written
    assert "--set log.dirs=/var/lib/ottla " in value_of("ottla.service", "ExecStart")


def test_both_units_have_the_same_user_and_directories() -> None:
    for name in ("DynamicUser", "User", "StateDirectory", "StateDirectoryMode", "ConfigurationDirectory"):
        assert value_of("ottla-format@.service", name) == value_of("ottla.service", name)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
@pytest.mark.parametrize("unit", sorted(each.name for each in UNITS.glob("*.service")))
def test_systemd_accepts_the_unit(tmp_path: Path, unit: str) -> None:
    text = (UNITS / unit).read_text(encoding="utf-8")
    (tmp_path / unit).write_text(text.replace("/opt/ottla/bin/ottla", "/bin/true"), encoding="utf-8")
    checked = subprocess.run(
        ["systemd-analyze", "verify", tmp_path / unit], capture_output=True, text=True, check=False
    )
    assert (checked.returncode, checked.stderr) == (0, "")
