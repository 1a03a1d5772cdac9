"""The faults during the pipeline's work: Spark is killed, and the broker is killed."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass

from ottla import Broker


@dataclass(frozen=True)
class Fault:
    """A kill that happens when a share of the records has been read."""

    share: float
    name: str
    strike: Callable[[], str] | None = None
    """Causes the fault and returns a description. None means that the process of Spark is killed by the job itself."""


class MortalBroker:
    """A broker in a process of its own, with the same address after each restart."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.started_ms = 0.0
        self._broker = self._start("127.0.0.1:0")
        self.address = self._broker.bootstrap_servers

    def _start(self, listen: str) -> Broker:
        began = time.monotonic()
        broker = Broker(self.folder, listen=listen, process=True).start()
        self.started_ms = (time.monotonic() - began) * 1000
        return broker

    def kill(self) -> str:
        """Kill the broker with SIGKILL, and start another one with its files."""
        victim = self._broker.pid
        os.kill(victim, signal.SIGKILL)
        self._broker.close()
        self._broker = self._start(self.address)
        return f"kill -9 {victim}, the broker; there again after {self.started_ms:.0f} ms"

    def close(self) -> None:
        self._broker.close()
