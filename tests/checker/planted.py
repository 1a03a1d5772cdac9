"""The process of a broker that may have a bug and crashes at planned moments. Its first argument is the plan, as JSON."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

from ottla.broker.coordinators import transaction_coordinator, transaction_markers
from ottla.broker.embedding import broker_process
from ottla.broker.node import BrokerNode
from ottla.storage.producers.producer_entry import Origin
from tests.checker import plants
from tests.checker.generator import AFTER_APPEND, AFTER_MARKER, AFTER_PREPARED


class Fuse:
    """Kills this process when it is counted down."""

    def __init__(self, count: int) -> None:
        self.left = count

    def burn(self) -> None:
        """One less."""
        self.left -= 1
        if self.left <= 0:
            os.kill(os.getpid(), signal.SIGKILL)


def die_after_append(fuse: Fuse) -> None:
    """A batch is in the log, and its producer gets no response."""
    note = BrokerNode.note_append

    def dying(self: Any, *arguments: Any) -> None:
        note(self, *arguments)
        if arguments[-1] is Origin.CLIENT:
            fuse.burn()

    node: Any = BrokerNode
    node.note_append = dying


def die_after_prepared(fuse: Fuse) -> None:
    """A transaction is decided, and no partition knows."""
    coordinator: Any = transaction_coordinator.TransactionCoordinator
    deliver: Callable[..., None] = coordinator._deliver

    def dying(*arguments: Any) -> None:
        fuse.burn()
        deliver(*arguments)

    coordinator._deliver = dying


def die_after_marker(fuse: Fuse) -> None:
    """Some partitions know the end of a transaction, or all do, and the coordinator does not know that they do."""
    markers: Any = transaction_markers.EndMarkers
    write: Callable[..., int] = markers.write

    def dying(*arguments: Any) -> int:
        code = write(*arguments)
        fuse.burn()
        return code

    markers.write = dying


DEATHS: dict[str, Callable[[Fuse], None]] = {
    AFTER_APPEND: die_after_append,
    AFTER_PREPARED: die_after_prepared,
    AFTER_MARKER: die_after_marker,
}


def main() -> None:
    how = json.loads(sys.argv[1])
    job = json.loads(sys.stdin.readline())
    if how["plant"]:
        plants.PLANTS[how["plant"]]()
    if how["point"] in DEATHS:
        DEATHS[how["point"]](Fuse(how["count"]))
    broker_process.run_broker(job)


if __name__ == "__main__":
    main()
