"""A partition on three brokers under crashes, lost disks and lost tails of them, cuts of the network, and what must
hold all the time.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice

from ottla.coordination.replication.assignment import ReplicaAssignment
from tests.simulation.replica_broker import ReplicaBroker
from tests.simulation.replica_controller import NOBODY, Controller, Image
from tests.simulation.replica_log import ReplicaLog
from tests.simulation.stored_log import StoredLog
from tests.simulation.world import World

LENGTH = 60.0
"""Seconds of trouble."""
PEACE = 60.0
"""Seconds in which all must be well again."""


class ReplicaHistory:
    """One seed, one history."""

    def __init__(self, seed: int) -> None:
        self.world = World(seed)
        chance = self.world.chance
        count = chance.choice((2, 3, 3, 4))
        ids = tuple(range(1, count + 1))
        self.controller = Controller(self.world, ReplicaAssignment(NOBODY, 0, 0, ids, frozenset(ids), 2))
        self.brokers = {id_: ReplicaBroker(self, id_) for id_ in ids}
        self.loss = chance.choice((0.0, 0.02, 0.1))
        self.slow = chance.choice((0.02, 0.2, 0.6))
        self.cut: set[frozenset[int]] = set()
        """Pairs that do not reach each other; 0 is the controller."""
        self.acked: dict[int, int] = {}
        self.seen: dict[int, int] = {}
        self.recovering: set[int] = set()
        """Brokers that crashed and have not been in the ISR since."""
        self.replaces_disks = seed % 4 == 1
        self.written = 0
        self._arrives: dict[int, float] = {}
        self._held: dict[tuple[ReplicaLog | StoredLog, int], int] = {}
        """The number of records of `acked` in a log, and the number of its truncations."""

    # the network

    def reaches(self, one: int, other: int) -> bool:
        return frozenset({one, other}) not in self.cut

    def send(self, sender: int, receiver: int, act: Callable[[], None]) -> None:
        """A message: late, lost, or twice."""
        for _ in range(2 if self.world.likely(self.loss / 2) else 1):
            if not self.world.likely(self.loss):
                delay = self.world.chance.random() * self.slow
                self.world.after(delay, lambda: act() if self.reaches(sender, receiver) else None)

    def publish_image(self, image: Image) -> None:
        """The metadata log reaches each broker in its order, at its own pace."""
        for broker in self.brokers.values():
            self._send_image(broker, broker.incarnation, image)

    def _send_image(self, broker: ReplicaBroker, incarnation: int, image: Image) -> None:
        at = max(self.world.now + self.world.chance.random() * self.slow, self._arrives.get(broker.id, 0.0))
        self._arrives[broker.id] = at

        def arrive() -> None:
            if not broker.up or broker.incarnation != incarnation:
                return
            if self.reaches(broker.id, 0):
                if broker.image is None or image.offset > broker.image.offset:
                    broker.hear(image)
            else:
                self._send_image(broker, incarnation, image)

        self.world.at(at if self.reaches(broker.id, 0) else at + 0.5, arrive)

    # clients

    def acknowledged(self, offset: int, value: int) -> None:
        assert self.acked.setdefault(offset, value) == value, f"two values were acknowledged at offset {offset}"

    def client(self) -> None:
        """Write to every broker that considers itself the leader, and read from it."""
        for broker in self.brokers.values():
            if broker.up and broker.leader is not None:
                if self.world.likely(0.7):
                    self.written += 1
                    broker.produce(self.written)
                self._read(broker)

    def _read(self, broker: ReplicaBroker) -> None:
        assert broker.leader is not None
        for offset in {self.world.chance.randrange(broker.log.end + 1), broker.log.end - 1, len(self.seen)}:
            value = broker.read(offset) if offset >= 0 else None
            if value is not None:
                assert self.seen.setdefault(offset, value) == value, f"offset {offset} has changed for its readers"

    # trouble

    def trouble(self) -> None:
        """Cause a random fault."""
        chance = self.world.chance
        broker = self.brokers[chance.choice(list(self.brokers))]
        what = chance.random()
        if what < 0.4 and self._may_lose(broker):
            self.recovering.add(broker.id)
            broker.crash(loses=chance.random() < 0.6)
            self.maybe_replace_disk(broker)
            self.world.after(chance.choice((0.3, 1.0, 5.0)), lambda: broker.start(clean=False))
        elif what < 0.8:
            pair = frozenset({broker.id, chance.choice([0, *self.brokers])})
            self.cut.add(pair)
            self.world.say("network", "cuts", sorted(pair))
            self.world.after(chance.choice((0.5, 2.0, 8.0)), lambda: self.cut.discard(pair))
        else:
            self.loss, self.slow = chance.choice((0.0, 0.1, 0.3)), chance.choice((0.02, 0.2, 0.6))

    def maybe_replace_disk(self, broker: ReplicaBroker) -> None:
        if self.replaces_disks and self.world.likely(0.3):
            broker.replace_disk()

    def _may_lose(self, broker: ReplicaBroker) -> bool:
        """Never more brokers at a time than one less than `min.insync.replicas`: the others have what was acknowledged."""
        others = [other for other in self.brokers.values() if other is not broker]
        return broker.up and all(other.up and self._is_back(other) for other in others)

    def _is_back(self, broker: ReplicaBroker) -> bool:
        """True if it has been in the ISR since its last crash."""
        if broker.up and broker.id in self.controller.assignment.in_sync:
            self.recovering.discard(broker.id)
        return broker.id not in self.recovering

    def _is_known(self, id_: int) -> bool:
        known = self.controller.registered.get(id_)
        return known is not None and known.epoch == self.brokers[id_].epoch

    # the play

    def transcript(self) -> str:
        return self.world.transcript()

    def run(self) -> None:
        self.controller.listeners.append(self.publish_image)
        for broker in self.brokers.values():
            broker.start(clean=True)
        self.world.run_until(3.0)
        until = self.world.now + LENGTH
        while self.world.now < until:
            self._step()
            if self.world.likely(0.06):
                self.trouble()
        self._heal()
        until = self.world.now + PEACE
        while self.world.now < until:
            self._step()
        self._check_end()

    def _step(self) -> None:
        for broker in self.brokers.values():
            self._is_back(broker)
        self.world.run_until(self.world.now + 0.1)
        self.controller.fence_the_silent()
        self.client()
        self.check()

    def _heal(self) -> None:
        self.cut.clear()
        self.loss, self.slow = 0.0, 0.02
        self.world.say("world", "is at peace")

    # what must hold

    def check(self) -> None:
        """Check that the leader and eligible leaders have every acknowledged record; logs that agree on an end agree
        before it.
        """
        assignment = self.controller.assignment
        alive = self.controller.alive().epochs
        assert assignment.in_sync <= alive.keys() | {assignment.leader}, "somebody who is fenced is in sync"
        for id_ in assignment.in_sync | self.controller.eligible:
            broker = self.brokers[id_]
            if broker.up and self._is_known(id_):
                self._check_log(broker)

    def _check_log(self, broker: ReplicaBroker) -> None:
        """Check that a log keeps its records until it is truncated."""
        batches, held = broker.log.batches, (broker.log, broker.log.cuts)
        known = self._held.get(held, 0)
        for offset, value in islice(self.acked.items(), known, None):
            assert offset < len(batches), (
                f"broker {broker.id} may lead and lacks offset {offset}, which was acknowledged"
            )
            assert batches[offset][1] == value, f"broker {broker.id} may lead and has another value at offset {offset}"
        self._held[held] = len(self.acked)

    def _check_end(self) -> None:
        before = len(self.acked)
        self._held.clear()
        for _ in range(50):
            self._step()
        assert len(self.acked) > before, "nothing is acknowledged though all is well"
        assert self.controller.assignment.in_sync == set(self.brokers), "not everybody is in sync though all is well"
        logs = [broker.log.batches for broker in self.brokers.values()]
        shortest = min(map(len, logs))
        assert all(log[:shortest] == logs[0][:shortest] for log in logs), "copies differ"
