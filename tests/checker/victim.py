"""A broker in a process of its own that dies as planned, and comes back at the same address."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, Protocol

from ottla.free_ports import free_port
from tests.checker.generator import KILLED, Crash

START_SECONDS = 30.0


class Mortal(Protocol):
    """A broker, or several in turn, that crashes as planned and is restarted."""

    address: str

    def start(self, crash: Crash | None = None) -> None: ...

    def kill(self) -> None: ...

    def is_dead(self, timeout: float) -> bool: ...

    def wait(self) -> None: ...


class Victim:
    """`with Victim(folder) as broker:`; `plant` names a bug of `tests.checker.plants` that it is to have."""

    def __init__(self, directory: Path, plant: str | None = None, **settings: Any) -> None:
        self.address = f"127.0.0.1:{free_port()}"
        self.deaths = 0
        self._settings = settings | {"log_dirs": str(directory), "listeners": self.address}
        self._plant = plant
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Victim:
        return self

    def __exit__(self, *error: object) -> None:
        if self._process is not None:
            self.kill()
            self.wait()

    def start(self, crash: Crash | None = None) -> None:
        """Live until `crash`, or until `kill`."""
        settings = {"group_initial_rebalance_delay_ms": 0} | self._settings
        job = {"config": settings, "path": sys.path, "parent": os.getpid(), "levels": {"ottla": 50}}
        how = {"plant": self._plant, "point": crash.point if crash else KILLED, "count": crash.count if crash else 0}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.checker.planted", json.dumps(how)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(job).encode() + b"\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline() or "{}")
        # It may reach the planned point before it is ready, for example while it completes prepared transactions.
        assert "ready" in answer or (not answer and crash is not None and self.is_dead(START_SECONDS)), answer

    def kill(self) -> None:
        """Kill the process, as the system does when it is out of memory."""
        assert self._process is not None
        self._process.send_signal(signal.SIGKILL)

    def is_dead(self, timeout: float) -> bool:
        """True if it exits by itself within so many seconds."""
        assert self._process is not None
        try:
            self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            return False
        return True

    def wait(self) -> None:
        """Until it is dead."""
        assert self._process is not None
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        self._process = None
        self.deaths += 1


class Keeper(threading.Thread):
    """Sees to it that the broker dies as planned, and lives again."""

    def __init__(self, victim: Mortal, crashes: tuple[Crash, ...], history: Any) -> None:
        super().__init__(daemon=True)
        self._victim = victim
        self._crashes = crashes
        self._history = history
        self._over = threading.Event()

    def run(self) -> None:
        for number, crash in enumerate(self._crashes):
            if not self._dies(crash):
                return
            self._victim.wait()
            self._victim.start(next(iter(self._crashes[number + 1 :]), None))

    def stop(self) -> None:
        """No crashes any more; when this returns the broker lives."""
        self._over.set()
        self.join()

    def _dies(self, crash: Crash) -> bool:
        """Crash the victim at the planned point; return False if the plan is over first."""
        goal = len(self._history) + crash.count
        while not self._over.is_set():
            if crash.point == KILLED and self._history.wait_for(goal, 0.05):
                self._victim.kill()
                return True
            if crash.point != KILLED and self._victim.is_dead(0.05):
                return True
        return False
