"""Brokers that join controllers of ours, in processes of their own, and what a client of theirs counts."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ottla.broker.controller.formatting import format_without_voters
from ottla.broker.server import Server
from ottla.client.consumer import Consumer
from ottla.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.broker.quorum_nodes import CLUSTER, PORT, Place
from tests.broker.wire import Wire
from tests.patience import PATIENCE, eventually


class BrokerPlace(Place):
    """One broker's settings and directory."""

    def __init__(self, folder: Path, node_id: int, host: str, controllers: Sequence[Place], **more: str) -> None:
        super().__init__(folder, node_id, host)
        self.settings |= {
            "process.roles": "broker",
            "listeners": f"PLAINTEXT://{host}:{PORT}",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
            "cordoned.log.dirs": "",
            "broker.heartbeat.interval.ms": "200",
            **{name.replace("_", "."): value for name, value in more.items()},
        }
        self.knows(controllers)
        format_without_voters(self.config, CLUSTER)


class StartedBroker:
    """A broker in a thread."""

    def __init__(self, place: BrokerPlace) -> None:
        self.server = Server(place.config)
        self._let_in = threading.Event()
        self.server.when_ready(self._let_in.set)
        self._thread = threading.Thread(target=self.server.run)
        self._thread.start()

    def wait(self) -> None:
        """Until the controllers have let it in."""
        assert self._let_in.wait(PATIENCE)

    def close(self) -> None:
        self.server.stop()
        self._thread.join()


def make_topic(broker: Place, topic: CreatableTopic) -> None:
    with Wire(broker.address) as client:
        response: Any = client.ask(CreateTopicsRequest([topic], timeout_ms=30_000))
    assert [(each.error_code, each.error_message) for each in response.topics] == [(0, None)]


def partitions_of(broker: Place, topic: str) -> list[Any]:
    """The partitions of the topic as described by a broker."""
    with Wire(broker.address) as client:
        response: Any = client.ask(MetadataRequest([MetadataRequestTopic(name=topic)], False))
    return sorted(response.topics[0].partitions, key=lambda each: each.partition_index)


def is_led(broker: Place, topic: str, leader: int | None = None, in_sync: int = 1) -> bool:
    """True if every partition has a leader (the given broker, if any) and an ISR of the given size."""
    found = partitions_of(broker, topic)
    leaders = all(each.leader_id >= 0 if leader is None else each.leader_id == leader for each in found)
    return bool(found) and leaders and all(len(each.isr_nodes) >= in_sync for each in found)


def counted(addresses: str, topic: str, at_least: int) -> Counter[bytes]:
    """Return value → number of occurrences, read until there are `count` records."""
    found: Counter[bytes] = Counter()

    def enough() -> bool:
        found.update(each.value or b"" for each in consumer.poll(0.2))
        return found.total() >= at_least

    with Consumer(
        {"bootstrap.servers": addresses, "group.id": "counting", "auto.offset.reset": "earliest"}
    ) as consumer:
        consumer.subscribe([topic])
        eventually(enough)
        found.update(each.value or b"" for each in consumer.poll(0.5))
    return found
