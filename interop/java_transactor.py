"""Java's transactional producer. It continues when brokers are killed, and prints the outcome of each transaction."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

from interop.java_programs import program
from rivals.kafka_cluster import PATIENCE, wait_for


class JavaTransactor:
    """Writes consecutive numbers to all topics at once, each number in a transaction, like `Transactor`."""

    def __init__(
        self, address: str, topics: Sequence[str], transactional_id: str, folder: Path, first: int = 0
    ) -> None:
        self._said = folder / f"java-transactor-{transactional_id}-{first}"
        self._first = first
        self._command = program("Transactor", address, ",".join(topics), transactional_id, str(first))
        self._command.insert(1, "-Xmx128M")

    @property
    def count(self) -> int:
        """The end of the range of committed numbers, which starts at `first`."""
        return self._first + self._told("committed ")

    @property
    def aborted(self) -> int:
        return self._told("aborted ")

    @property
    def aborted_attempts(self) -> list[str]:
        """The keys of the records in aborted attempts."""
        return [line.split()[2] for line in self._said.read_text().splitlines() if line.startswith("aborted ")]

    @property
    def is_over(self) -> bool:
        return self._process.poll() is not None

    @property
    def failed(self) -> str:
        return "\n".join(line for line in self._said.read_text().splitlines() if line.startswith("failed "))

    def __enter__(self) -> JavaTransactor:
        with self._said.open("wb") as said:
            self._process = subprocess.Popen(self._command, stdin=subprocess.PIPE, stdout=said, stderr=said)
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(b"\n")
            self._process.stdin.close()
            self._process.wait(PATIENCE)
        finally:
            self._process.kill()
            self._process.wait()

    def kill(self) -> None:
        """Kill the process with SIGKILL, as a power failure would."""
        self._process.kill()
        self._process.wait()

    def go_on(self, count: int = 10) -> None:
        """Wait until `count` more numbers are committed."""
        enough = self.count + count
        wait_for(
            lambda: self.count >= enough or self._process.poll() is not None, lambda: self._said.read_text()[-2000:]
        )
        assert self._process.poll() is None, self._said.read_text()[-2000:]

    def _told(self, what: str) -> int:
        return sum(line.startswith(what) for line in self._said.read_text().splitlines())
