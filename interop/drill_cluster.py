"""The practice cluster of `docs/disasters.md`: `ottla cluster start --data-dir drill`, and nodes that are killed and started alone."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import IO

from ottla.free_ports import free_port
from tests.cli.conftest import Finished, ottla
from tests.patience import eventually

READY_SECONDS = 90.0
OTTLA = [sys.executable, "-m", "ottla.cli.main"]
NODES = (1, 2, 3)


class DrillCluster:
    """Three nodes on this machine, and the commands that were run against them."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.data = home / "drill"
        self._pids: dict[int, int] = {}
        self._processes: list[subprocess.Popen[bytes]] = []
        self._outputs: list[IO[bytes]] = []

    def __enter__(self) -> DrillCluster:
        address = f"127.0.0.1:{free_port()}"
        log = self._start("cluster", "start", "--data-dir", self.data, "--listen", address)
        eventually(lambda: b"Ctrl-C stops all" in log.read_bytes(), READY_SECONDS)
        text = log.read_text()
        self._pids = {int(node): int(pid) for node, pid in re.findall(r"node (\d+) is process (\d+)", text)}
        self.addresses = dict(zip(NODES, re.findall(r"^ready (\S+)", text, re.MULTILINE), strict=True))
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            process.wait(READY_SECONDS)
        for output in self._outputs:
            output.close()

    @property
    def servers(self) -> str:
        """The addresses of all nodes, of which some may be down."""
        return ",".join(self.addresses.values())

    def run(self, *words: object) -> Finished:
        """Run `ottla …` against the cluster."""
        return ottla(*words, "-b", self.servers)

    def folder(self, node: int) -> Path:
        """Return the data directory of a node."""
        (line,) = re.findall(r"^log\.dirs ?= ?(.*)$", self.config(node).read_text(), re.MULTILINE)
        return Path(line)

    def config(self, node: int) -> Path:
        """Return the settings file of a node."""
        return self.data / f"node-{node}.properties"

    def kill(self, node: int) -> None:
        """End a node by SIGKILL."""
        pid = self._pids.pop(node)
        os.kill(pid, signal.SIGKILL)
        eventually(lambda: not is_running(pid))

    def restart(self, node: int) -> None:
        """Start a node alone, as the page says."""
        log = self._start("broker", "--config", self.config(node))
        eventually(lambda: b"ready " in log.read_bytes(), READY_SECONDS)
        self._pids[node] = self._processes[-1].pid

    def _start(self, *words: object) -> Path:
        log = self.home / f"process-{len(self._processes)}.log"
        output = log.open("wb")
        self._outputs.append(output)
        command = [*OTTLA, *map(str, words)]
        self._processes.append(subprocess.Popen(command, cwd=self.home, stdout=output, stderr=subprocess.STDOUT))
        return log


def is_running(pid: int) -> bool:
    """Return True if the process runs; one that has ended and was not waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
