"""`ottla_broker.faults`: inject faults into the handling of requests.

with ottla_broker.faults.fail("Produce", error="NOT_LEADER_OR_FOLLOWER", nth=1) as fault:
    program_under_test()
assert fault.happened == 1

Each method returns a `Fault` that is removed at the end of its `with` block, by `undo()`, or at the end of the test.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ottla.config import unknown
from ottla.errors import ConfigError, ErrorCode, IllegalStateError
from ottla.testing.faults.fault import DELAY, DROP, FAIL, HOLD, LOSE, Fault

if TYPE_CHECKING:
    from ottla.broker.server import Server
    from ottla.testing.faults.faulty_handler import FaultyRequestHandler

DEADLINE_SECONDS = 60.0


class Faults:
    """The faults of a broker in this process."""

    def __init__(self, server: Callable[[], Server | None]) -> None:
        self._find = server
        self._faulty_handler: FaultyRequestHandler | None = None
        self._faulty_server: Server | None = None
        self._active: list[Fault] = []

    def delay(self, api: str | None = None, *, ms: float, nth: int | None = None, times: int | None = None) -> Fault:
        """Handle requests only after `ms` milliseconds; later requests of the same connection wait too."""
        if not isinstance(ms, int | float) or not ms >= 0:
            raise ConfigError(f"invalid value {ms!r} for ms: expected milliseconds, such as ms=300")
        return self._add(Fault(DELAY, known_api(api), self._undo, *checked_counts(nth, times), ms / 1000))

    def drop(self, api: str | None = None, *, nth: int | None = None, times: int | None = None) -> Fault:
        """Ignore requests, and close their connections."""
        return self._add(Fault(DROP, known_api(api), self._undo, *checked_counts(nth, times)))

    def drop_answer(self, api: str | None = None, *, nth: int | None = None, times: int | None = None) -> Fault:
        """Execute requests, and close their connections instead of sending the response."""
        return self._add(Fault(LOSE, known_api(api), self._undo, *checked_counts(nth, times)))

    def fail(self, api: str, *, error: str, nth: int | None = None, times: int | None = None) -> Fault:
        """Ignore requests, and respond with an error for everything that they name."""
        code = known_error(error)
        fault = Fault(FAIL, known_api(api), self._undo, *checked_counts(nth, times), error_code=code)
        if not can_fail(api):
            raise ConfigError(f"the response to {api} cannot contain {error}: use drop({api!r})")
        return self._add(fault)

    def hang(self, api: str | None = None, *, nth: int | None = None, times: int | None = None) -> Fault:
        """Leave requests without a response until the fault is removed."""
        return self._add(Fault(HOLD, known_api(api), self._undo, *checked_counts(nth, times)))

    def expire_share_locks(self, group: str) -> int:
        """Expire the acquisition locks of a share group now, and return the number of released records.

        They are delivered again with the next delivery count, or given up at `share.delivery.count.limit`. An acknowledgement
        that arrives later gets INVALID_RECORD_STATE.
        """
        server = self._require_server()
        released: list[int] = []
        run_in_loop(server, lambda: released.append(server.node.share_partitions.expire_locks(group)))
        return released[0]

    def clear(self) -> None:
        """Remove all faults."""
        for fault in list(self._active):
            fault.undo()

    def _add(self, fault: Fault) -> Fault:
        from ottla.testing.faults.faulty_handler import FaultyRequestHandler

        server = self._require_server()
        if self._faulty_handler is None or self._faulty_server is not server:
            self._faulty_handler, self._faulty_server = FaultyRequestHandler(server), server
        handler = self._faulty_handler
        run_in_loop(server, lambda: handler.add(fault))
        self._active.append(fault)
        return fault

    def _require_server(self) -> Server:
        server = self._find()
        if server is None:
            raise IllegalStateError(
                "faults need a running broker in this process: remove process=True from ottla_broker_settings"
            )
        return server

    def _undo(self, fault: Fault) -> None:
        if fault not in self._active:
            return
        self._active.remove(fault)
        if self._faulty_handler is not None and self._faulty_server is not None and self._find() is self._faulty_server:
            handler = self._faulty_handler
            run_in_loop(self._faulty_server, lambda: handler.remove(fault))


def run_in_loop(server: Server, work: Callable[[], Any]) -> None:
    """Run a function in the broker's thread, and wait until it is done."""
    done = threading.Event()

    def act() -> None:
        try:
            work()
        finally:
            done.set()

    server.call_soon(act)
    if not done.wait(DEADLINE_SECONDS):
        raise IllegalStateError(f"the broker's thread did not respond within {DEADLINE_SECONDS:.0f} s")


def checked_counts(nth: int | None, times: int | None) -> tuple[int | None, int | None]:
    """Check the counts of a fault; raise ConfigError if they match no request."""
    if nth is not None and times is not None:
        raise ConfigError(f"nth={nth} and times={times} exclude each other: nth hits one request, times the first ones")
    for name, value in (("nth", nth), ("times", times)):
        if value is not None and (not isinstance(value, int) or value < 1):
            raise ConfigError(f"invalid value {value!r} for {name}: expected a number from 1")
    return nth, times


def known_api(api: str | None) -> str | None:
    from ottla.protocol.apis import SERVED

    names = sorted(each.name for each in SERVED.values())
    if api is not None and api not in names:
        raise ConfigError(
            f"{unknown('API', api, names)}; the names are Kafka's, such as Produce, Fetch and OffsetCommit"
        )
    return api


def known_error(name: str) -> int:
    """Return the code of an error by its name in Kafka."""
    if name == "NONE" or name not in ErrorCode.__members__:
        raise ConfigError(
            f"{unknown('error', name, ErrorCode.__members__)}; the names are Kafka's, such as NOT_LEADER_OR_FOLLOWER"
        )
    return int(ErrorCode[name])


def can_fail(api: str) -> bool:
    from ottla.protocol.apis import APIS, DECLARED
    from ottla.testing.faults.refusing import carries_error

    key = next(key for key, each in DECLARED.items() if each.name == api)
    return carries_error(APIS[key].response)
