"""`ottla_broker.faults`: what a test asks to go wrong.

    with ottla_broker.faults.fail("Produce", error="NOT_LEADER_OR_FOLLOWER", nth=1) as fault:
        program_under_test()
    assert fault.happened == 1

Each method gives a `Fault`, which is over when its `with` block ends, by `undo()`, or when the test is over.
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
    from ottla.testing.faults.faulty_way import FaultyWay

DEADLINE_SECONDS = 60.0


class Faults:
    """The faults of a broker in this process."""

    def __init__(self, server: Callable[[], Server | None]) -> None:
        self._find = server
        self._way: FaultyWay | None = None
        self._at: Server | None = None
        self._active: list[Fault] = []

    def delay(self, api: str | None = None, *, ms: float, nth: int | None = None, times: int | None = None) -> Fault:
        """Begin with requests only after `ms` milliseconds; what the client sends behind them waits, too."""
        if not isinstance(ms, int | float) or not ms >= 0:
            raise ConfigError(f"ms = {ms!r} is no delay: give milliseconds, such as ms=300")
        return self._add(Fault(DELAY, known_api(api), self._undo, *counted(nth, times), ms / 1000))

    def drop(self, api: str | None = None, *, nth: int | None = None, times: int | None = None) -> Fault:
        """Do nothing for requests, and close their connections."""
        return self._add(Fault(DROP, known_api(api), self._undo, *counted(nth, times)))

    def drop_answer(self, api: str | None = None, *, nth: int | None = None, times: int | None = None) -> Fault:
        """Do what requests ask, and close their connections in place of an answer: an append, of which nobody hears."""
        return self._add(Fault(LOSE, known_api(api), self._undo, *counted(nth, times)))

    def fail(self, api: str, *, error: str, nth: int | None = None, times: int | None = None) -> Fault:
        """Do nothing for requests, and answer an error for all that they name."""
        code = known_error(error)
        fault = Fault(FAIL, known_api(api), self._undo, *counted(nth, times), error_code=code)
        if not can_fail(api):
            raise ConfigError(f"the answer to {api} has no room for {error}: use drop({api!r})")
        return self._add(fault)

    def hang(self, api: str | None = None, *, nth: int | None = None, times: int | None = None) -> Fault:
        """Leave requests without an answer, as a broker that stands still; they go on when the fault is undone."""
        return self._add(Fault(HOLD, known_api(api), self._undo, *counted(nth, times)))

    def clear(self) -> None:
        """Undo them all."""
        for fault in list(self._active):
            fault.undo()

    def _add(self, fault: Fault) -> Fault:
        from ottla.testing.faults.faulty_way import FaultyWay

        server = self._find()
        if server is None:
            raise IllegalStateError(
                "faults need a running broker in this process: leave process=True out of ottla_broker_settings"
            )
        if self._way is None or self._at is not server:
            self._way, self._at = FaultyWay(server), server
        way = self._way
        in_loop(server, lambda: way.add(fault))
        self._active.append(fault)
        return fault

    def _undo(self, fault: Fault) -> None:
        if fault not in self._active:
            return
        self._active.remove(fault)
        if self._way is not None and self._at is not None and self._find() is self._at:
            way = self._way
            in_loop(self._at, lambda: way.remove(fault))


def in_loop(server: Server, work: Callable[[], Any]) -> None:
    """Have the broker's own thread do something, and wait for that."""
    done = threading.Event()

    def act() -> None:
        try:
            work()
        finally:
            done.set()

    server.call_soon(act)
    if not done.wait(DEADLINE_SECONDS):
        raise IllegalStateError(f"the broker's thread did not take a fault within {DEADLINE_SECONDS:.0f} s")


def counted(nth: int | None, times: int | None) -> tuple[int | None, int | None]:
    """Which requests; ConfigError for numbers that hit none."""
    if nth is not None and times is not None:
        raise ConfigError(
            f"nth={nth} and times={times} exclude each other: nth hits one request, times the first so many"
        )
    for name, value in (("nth", nth), ("times", times)):
        if value is not None and (not isinstance(value, int) or value < 1):
            raise ConfigError(f"{name} = {value!r} hits no request: count from 1")
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
    """The code of an error by its name in Kafka."""
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
