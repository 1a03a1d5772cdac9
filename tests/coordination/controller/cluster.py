"""A controller whose records are replayed as they are decided, with commands and descriptions of one line."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar
from uuid import UUID

from ottla.coordination.cluster.features import ELR_VERSION
from ottla.coordination.cluster.metadata import ClusterMetadata
from ottla.coordination.cluster.records import (
    FeatureLevelRecord,
    PartitionRecord,
    TopicRecord,
    decode_record,
    encode_record,
)
from ottla.coordination.cluster.topic import PartitionState
from ottla.coordination.controller.config import ControllerConfig
from ottla.coordination.controller.controller import SESSION_RECORDS, Controller
from ottla.coordination.controller.events import (
    NO_RANDOM_VALUES,
    ControllerActivated,
    ControllerRequest,
    RandomValues,
    SessionTimerExpired,
)
from ottla.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from ottla.protocol.messages.broker_registration import (
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
    Feature,
    Listener,
)
from ottla.protocol.schema import Message

TOPIC = UUID(int=1000)
LEVELS = [("metadata.version", 7, 33), (ELR_VERSION, 0, 1)]
Response = TypeVar("Response", bound=Message)


def directory(broker: int) -> UUID:
    return UUID(int=200 + broker)


def registration(broker: int, start: int = 1, **said: Any) -> BrokerRegistrationRequest:
    """A broker at its first, second … start."""
    request: dict[str, Any] = {
        "cluster_id": "c",
        "incarnation_id": UUID(int=1000 * broker + start),
        "listeners": [Listener("PLAINTEXT", f"h{broker}", 9092, 0)],
        "features": [Feature(*each) for each in LEVELS],
        "log_dirs": [directory(broker)],
    }
    return BrokerRegistrationRequest(broker, **{**request, **said})


class Cluster:
    """Keeps time by hand, and checks the controller after every record that it writes."""

    def __init__(self, *brokers: int, elr: bool = True, min_isr: int = 1, unclean: bool = False) -> None:
        self.now = 0.0
        self.log: list[Message] = []
        self.notes: list[str] = []
        self.alarms: dict[Any, float | None] = {}
        self.config = ControllerConfig(
            "c",
            topic_defaults={
                "min.insync.replicas": str(min_isr),
                "unclean.leader.election.enable": str(unclean).lower(),
            },
        )
        self.controller = Controller(self.config)
        self.write([FeatureLevelRecord("metadata.version", 33), FeatureLevelRecord(ELR_VERSION, int(elr))])
        for broker in brokers:
            self.join(broker)

    @classmethod
    def empty(cls) -> Cluster:
        """In which nothing has been decided yet."""
        cluster = cls()
        cluster.log, cluster.controller = [], Controller(cluster.config)
        return cluster

    def write(self, records: Iterable[Any]) -> None:
        for record in records:
            if isinstance(record, SESSION_RECORDS):
                self.controller.replay(record)
                continue
            self.controller.replay(decode_record(encode_record(record)), len(self.log))
            self.log.append(record)
            self.controller.check()

    def happen(self, event: Any) -> Any:
        """Decide, write, and give back the only reply, if there is one."""
        decision = self.controller.decide(event, self.now)
        self.write(decision.records)
        self.notes += decision.notes
        for alarm in decision.alarms:
            if not (alarm.keep and self.alarms.get(alarm.name) is not None):
                self.alarms[alarm.name] = alarm.at
        return decision.replies[0].message if decision.replies else None

    def ask(self, request: Message, kind: type[Response], chance: RandomValues = NO_RANDOM_VALUES) -> Response:
        answer = self.happen(ControllerRequest(1, request, chance))
        assert isinstance(answer, kind)
        return answer

    def wait(self, seconds: float) -> None:
        """Let time pass; each alarm fires at its time."""
        end = self.now + seconds
        while due := [(at, name) for name, at in self.alarms.items() if at is not None and at <= end]:
            at, name = min(due)
            del self.alarms[name]
            self.now = max(self.now, at)
            self.happen(SessionTimerExpired())
        self.now = end

    def register(self, broker: int, start: int = 1, **said: Any) -> BrokerRegistrationResponse:
        return self.ask(registration(broker, start, **said), BrokerRegistrationResponse)

    def beat(self, broker: int, **said: Any) -> BrokerHeartbeatResponse:
        """Send a heartbeat of a broker that has replayed all metadata, unless other values are given."""
        epoch = said.pop("epoch", self.epoch(broker))
        offset = said.pop("offset", len(self.log) - 1)
        return self.ask(BrokerHeartbeatRequest(broker, epoch, offset, **said), BrokerHeartbeatResponse)

    def join(self, broker: int, start: int = 1, **said: Any) -> None:
        assert not self.register(broker, start, **said).error_code
        assert not self.beat(broker).is_fenced

    def stop_cleanly(self, broker: int) -> None:
        """Stop a broker by a controlled shutdown, while all others send heartbeats."""
        while not self.beat(broker, want_shut_down=True).should_shut_down:
            for other, known in self.controller.metadata.registrations.items():
                if other != broker and not known.fenced:
                    self.beat(other)

    def epoch(self, broker: int) -> int:
        known = self.controller.metadata.registrations.get(broker)
        return -1 if known is None else known.epoch

    def fail_over(self) -> None:
        """Another controller takes over, from a snapshot."""
        metadata = ClusterMetadata()
        for record in self.controller.metadata.records():
            metadata.replay(decode_record(encode_record(record)))
        self.controller = Controller(self.config, metadata, len(self.log))
        self.alarms.clear()
        self.happen(ControllerActivated())

    def topic(self, *partitions: tuple[int, ...], name: str = "t", topic_id: UUID = TOPIC) -> None:
        """Create a topic whose partitions have these replicas, all in the ISR, each led by its first."""
        self.write([TopicRecord(name, topic_id)])
        for index, replicas in enumerate(partitions):
            places = [directory(each) for each in replicas]
            self.write([PartitionRecord(index, topic_id, replicas, replicas, (), (), replicas[0], 0, 0, 0, places)])

    def partition(self, index: int = 0, topic: str = "t") -> PartitionState:
        return self.controller.metadata.topics[topic].partitions[index]

    def led(self, index: int = 0) -> tuple[int, tuple[int, ...]]:
        """Return the leader and the ISR."""
        state = self.partition(index)
        return state.leader, state.isr
