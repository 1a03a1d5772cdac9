"""The network between members and their coordinator: slow, with broken connections and repeated requests.

A connection behaves like TCP: messages arrive in order. When it breaks, requests and responses in flight may or may not
arrive. Either side notices soon, late, or only by its own timeout. A message of the old connection may arrive after
messages of the next one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from ottla.client.metadata.metadata import Metadata
from ottla.client.runtime.future import Future
from ottla.errors import ErrorCode, KafkaError
from ottla.model import Node
from ottla.protocol.messages.heartbeat import HeartbeatRequest
from ottla.protocol.messages.join_group import JoinGroupRequest
from ottla.protocol.messages.offset_commit import OffsetCommitRequest
from ottla.protocol.messages.sync_group import SyncGroupRequest
from tests.simulation.world import World

BROKER = Node(0, "broker", 9092)
MAY_COME_TWICE = (HeartbeatRequest, SyncGroupRequest, JoinGroupRequest)


@dataclass(slots=True)
class Faults:
    """The quality of the network. All are probabilities per message."""

    breaks: float = 0.0
    repeats: float = 0.0
    slow: float = 0.0

    def calm(self) -> None:
        """From now on all is well."""
        self.breaks = self.repeats = self.slow = 0.0


class Connection:
    """Requests to the broker one by one, and their answers."""

    def __init__(self, world: World, faults: Faults, broker: Any, client: SimulatedClient) -> None:
        self.world = world
        self.faults = faults
        self.broker = broker
        self.client = client
        self.open = True
        self.gone = False
        """True if the broker knows that the connection is closed."""
        self.held: int = 0
        """The ticket of the request that the broker has not answered yet."""
        self._queue: deque[tuple[Any, Future[Any]]] = deque()
        self._busy = False
        self._unanswered: list[Future[Any]] = []
        self._arrives_there = 0.0
        broker.connections[self] = None
        self._arrives_here = 0.0

    def send(self, message: Any, future: Future[Any], timeout: float) -> None:
        """Send a request."""
        world = self.world
        self._unanswered.append(future)
        world.after(timeout, lambda: self._run_out_of_patience(future))
        self._arrives_there = max(self._arrives_there, world.now + self._latency())
        if world.likely(self.faults.breaks):
            if world.likely(0.5):
                world.at(self._arrives_there, lambda: self._receive(message, future))
            self._break_sometime()
            return
        world.at(self._arrives_there, lambda: self._receive(message, future))

    def break_off(self, why: str) -> None:
        """Close the client's end; the broker notices soon or late."""
        if not self.open:
            return
        self.open = False
        self.broker.connections.pop(self, None)
        error = KafkaError(ErrorCode.NETWORK_EXCEPTION, why)
        if not self.broker.down:
            patience = self.world.chance.choice((0.001, 0.01, 0.5, 12.0))
            self.world.after(patience, self._end_there)
        for future in self._unanswered:
            self.client.deliver(lambda future=future: future.set_exception(error))  # type: ignore[misc]
        self._unanswered.clear()

    def _run_out_of_patience(self, future: Future[Any]) -> None:
        if not future.done():
            self.break_off("request timed out")

    def _break_sometime(self) -> None:
        span = self.world.chance.choice((0.0, 0.05, 1.0, 8.0))
        self.world.after(span, lambda: self.break_off("connection lost"))

    def _latency(self) -> float:
        chance = self.world.chance
        return chance.random() * (3.0 if chance.random() < self.faults.slow else 0.02)

    def _receive(self, message: Any, future: Future[Any]) -> None:
        if self.gone or self.broker.down:
            return
        if not self.open and isinstance(message, OffsetCommitRequest):
            return  # arriving after a commit of the next connection it would lower offsets, which no implementation can prevent
        if isinstance(message, MAY_COME_TWICE) and self.world.likely(self.faults.repeats):
            self._repeat(message)
        self._queue.append((message, future))
        self._work()

    def _repeat(self, message: Any) -> None:
        # A static member without a member id is another instance: a second one would rightly fence the first.
        if getattr(message, "group_instance_id", None) is None and message.member_id:
            span = self.world.chance.random() * 2
            self.world.after(span, lambda: self.broker.handle(message, self.client.name, lambda _: None, None))

    def _work(self) -> None:
        while self._queue and not self._busy and not self.gone:
            message, future = self._queue.popleft()
            self._busy = True
            self.broker.handle(message, self.client.name, lambda answer, to=future: self._answer(answer, to), self)

    def _answer(self, answer: Any, future: Future[Any]) -> None:
        self._busy, self.held = False, 0
        world = self.world
        if not self.open or self.gone:
            return
        if world.likely(self.faults.breaks):
            self._break_sometime()
            return
        self._arrives_here = max(self._arrives_here, world.now + self._latency())
        world.at(self._arrives_here, lambda: self._hand_over(answer, future))
        world.after(0.0, self._work)

    def _hand_over(self, answer: Any, future: Future[Any]) -> None:
        if self.open and not future.done():
            self._unanswered.remove(future)
            response = SimpleNamespace(message=answer)
            self.client.deliver(lambda: future.set_result(response))

    def _end_there(self) -> None:
        if not self.gone and not self.broker.down:
            self.gone = True
            self.broker.caller_gone(self.held)


class SimulatedClient:
    """The network of one consumer thread: a `ConsumerNetworkClient` and its `NetworkClient` in one."""

    def __init__(
        self, world: World, name: str, metadata: Metadata, connect: Callable[[SimulatedClient], Connection]
    ) -> None:
        self.name = name
        self.metadata = metadata
        self.clock = world
        self.client = self
        self.api_versions: dict[int, Any] = {}
        self.unsent: dict[int, Any] = {}
        """Always empty: a request is sent at once."""
        self.wake: Callable[[], None] = lambda: None
        """Called on arrival of a message or on a call of `wakeup`."""
        self.asleep: float | None = None
        """For how long its thread wanted to wait when it last polled."""
        self._world = world
        self._connect = connect
        self._connections: dict[int, Connection] = {}
        self._inbox: deque[Callable[[], None]] = deque()
        self.refresh: Callable[[], None] = lambda: None

    def ready(self, node: Node, now: float) -> bool:
        """True: `send` connects by itself."""
        return True

    def send(self, node: Node, message: Any, *, timeout_ms: int = 5000, max_version: int | None = None) -> Future[Any]:
        future: Future[Any] = Future()
        connection = self._connections.get(node.node_id)
        if connection is None or not connection.open:
            connection = self._connections[node.node_id] = self._connect(self)
        if connection.broker.down:
            self._world.after(0.05, lambda: connection.break_off("connection refused"))
        connection.send(message, future, timeout_ms / 1000)
        return future

    def deliver(self, outcome: Callable[[], None]) -> None:
        """Queue an outcome for the thread's next poll."""
        self._inbox.append(outcome)
        self.wake()

    def fire(self) -> None:
        """Complete what has an outcome; a turn begins."""
        self.asleep = None
        while self._inbox:
            self._inbox.popleft()()

    def poll(self, timeout: float, *, wakeable: bool = True) -> None:
        self.asleep = 0.0 if self._inbox else max(0.0, timeout)

    def transmit_sends(self) -> float:
        return float("inf")

    def wait_until(self, done: Callable[[], bool], deadline: float) -> Generator[float, None, bool]:
        while not done() and self._world.now < deadline:
            yield deadline - self._world.now
        return done()

    def await_metadata(self, deadline: float) -> bool:
        self.refresh()
        return True

    def wakeup(self) -> None:
        self.wake()

    def least_loaded_node(self, now: float) -> Node:
        return BROKER

    def disconnect(self, node_id: int, why: str) -> None:
        connection = self._connections.get(node_id)
        if connection is not None:
            connection.break_off(why)

    def is_every_broker_down(self) -> bool:
        return False  # the simulated network loses, and does not refuse

    def describe_trouble(self) -> str:
        return "simulated"

    def close(self) -> None:
        """End all connections."""
        for connection in self._connections.values():
            connection.break_off("closed")
        self._inbox.clear()
