"""Three members join and leave, a static one restarts, and one sleeps too long."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from examples.rebalance.happening import BROKER, STORY, Happening, merged
from examples.rebalance.member import Member
from ottla import Admin, Broker, NewTopic
from ottla.trace import EventStream, Trace

TOPIC, PARTITIONS, GROUP = "orders", 6, "billing"
PATIENCE = 20.0
QUIET_SECONDS = 0.15
"""The pause after each step, so that the steps are distinguishable in the picture."""
STATIC = "cleo-1"
"""The `group.instance.id` of the member that restarts."""


class Told(NamedTuple):
    """The events of a finished story."""

    assignor: str
    happenings: list[Happening]


class Stage:
    """The broker, the current members, and the events of all."""

    def __init__(self, broker: Broker, assignor: str) -> None:
        self._servers = broker.bootstrap_servers
        self._settings = {
            "group_id": f"{GROUP}-{assignor}",
            "partition_assignment_strategy": assignor,
            "heartbeat_interval_ms": 50,
            "session_timeout_ms": 10_000,
        }
        self._steps = EventStream()
        self._notes: list[tuple[str, Trace]] = [(STORY, self._steps.trace()), (BROKER, broker.trace())]
        self.members: dict[str, Member] = {}

    def step(self, text: str) -> None:
        """Record the next step of the story."""
        self._steps.publish(text)

    def enter(self, name: str, **settings: Any) -> Member:
        """Start a member that joins the group."""
        member = Member(name, self._servers, TOPIC, **{**self._settings, **settings})
        self._notes.append((name, member.trace))
        self.members[name] = member
        return member

    def leave(self, name: str) -> None:
        self.members.pop(name).close()

    def settle(self, *names: str) -> None:
        """Wait until exactly these members own all partitions, and each owns at least one."""
        wanted = set(names)

        def settled() -> bool:
            shares = {name: member.partitions() for name, member in self.members.items()}
            owned = sorted(partition for share in shares.values() for partition in share)
            return owned == list(range(PARTITIONS)) and {name for name, share in shares.items() if share} == wanted

        wait_until(settled, f"{', '.join(names)} did not come to share all partitions")
        threading.Event().wait(QUIET_SECONDS)

    def told(self) -> list[Happening]:
        """Return all events so far."""
        return merged((who, trace.events()) for who, trace in self._notes)


def wait_until(condition: Callable[[], bool], complaint: str) -> None:
    """Wait until the condition is true. Raises TimeoutError after `PATIENCE` seconds."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{complaint} within {PATIENCE:.0f} s")
        time.sleep(0.005)


def play(broker: Broker, assignor: str, max_poll_interval_ms: int = 1000) -> Told:
    """Run the whole story with one assignor.

    `max_poll_interval_ms` is the setting of the member that sleeps too long.
    """
    stage = Stage(broker, assignor)
    try:
        tell(stage, max_poll_interval_ms)
    finally:
        for name in list(stage.members):
            stage.leave(name)
    return Told(assignor, stage.told())


def tell(stage: Stage, max_poll_interval_ms: int) -> None:
    """Run the steps of the story."""
    stage.step("anna comes, and has everything")
    anna = stage.enter("anna", max_poll_interval_ms=max_poll_interval_ms)
    stage.settle("anna")
    stage.step("bert comes")
    stage.enter("bert")
    stage.settle("anna", "bert")
    stage.step(f"cleo comes, as static member {STATIC}")
    stage.enter("cleo", group_instance_id=STATIC)
    stage.settle("anna", "bert", "cleo")
    stage.step("cleo restarts: nobody rebalances")
    stage.leave("cleo")
    stage.enter("cleo", group_instance_id=STATIC)
    stage.settle("anna", "bert", "cleo")
    stage.step(f"anna sleeps for longer than max.poll.interval.ms = {max_poll_interval_ms}")
    anna.sleep()
    stage.settle("bert", "cleo")
    stage.step("anna wakes up, and is let in again")
    anna.wake()
    stage.settle("anna", "bert", "cleo")
    stage.step("bert goes")
    stage.leave("bert")
    stage.settle("anna", "cleo")
    stage.step("all go; cleo, being static, says nothing, and her place is kept for her session")


def play_both(max_poll_interval_ms: int) -> list[Told]:
    """Run the story with the eager protocol, then with the cooperative one."""
    with Broker() as broker:
        with Admin(bootstrap_servers=broker.bootstrap_servers) as admin:
            admin.create_topics([NewTopic(TOPIC, PARTITIONS)])
        return [play(broker, assignor, max_poll_interval_ms) for assignor in ("range", "cooperative-sticky")]
