"""Reading from followers (KIP-392): the leader names a near replica, and a follower serves committed records."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.broker.apis.fetch import nowhere_else
from ottla.broker.embedding.embedded_broker import Broker
from ottla.broker.metadata.brokers import Brokers
from ottla.broker.metadata.observed_metadata import ObservedMetadata
from ottla.broker.node import BrokerNode
from ottla.broker.replica_manager.fetch_session import FetchedPartition
from ottla.broker.replica_manager.partition_reader import PartitionReader
from ottla.broker.replica_manager.waiting_fetch import WaitingFetch
from ottla.broker.settings.config import read_config
from ottla.clock import ManualClock
from ottla.coordination.cluster.node_records import BrokerEndpoint, RegisterBrokerRecord
from ottla.coordination.cluster.records import PartitionChangeRecord
from ottla.coordination.replication.fetched import AppendBatches
from ottla.errors import ConfigError, ErrorCode
from ottla.model import INT32_MAX, FileSlice
from ottla.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, PartitionData
from ottla.storage.log import Log
from ottla.storage.log_config import LogConfig
from tests.broker.test_assigned_replicas import ME as HERE
from tests.broker.test_assigned_replicas import OTHER as ELSEWHERE
from tests.broker.test_assigned_replicas import TOPIC, House
from tests.broker.test_replicated_partitions import ME, OTHER, follow, in_loop, lead
from tests.broker.wire import Wire, batch, values

BY_RACK = "org.apache.kafka.common.replica.RackAwareReplicaSelector"


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    """One that leads, and knows of another, which is in rack b."""
    log = Log.open(tmp_path / "__cluster_metadata-0", LogConfig(segment_bytes=INT32_MAX), now_ms=0, clean=True)
    observed = ObservedMetadata(log, ManualClock())
    for id_, rack in ((ME, "a"), (OTHER, "b")):
        place = [BrokerEndpoint("PLAINTEXT", "h", 9092, 0)]
        observed.machine.replay(RegisterBrokerRecord(id_, end_points=place, rack=rack, fenced=False))

    def know(node: BrokerNode) -> None:
        node.brokers = Brokers(observed)

    with Broker(node_id=ME, replica_selector_class=BY_RACK) as broker, Wire(broker.bootstrap_servers) as wire:
        wire.create("t")
        lead(broker, ME, OTHER)
        in_loop(broker, know)
        yield broker


def fetched(wire: Wire, rack: str, version: int = 12, session: tuple[int, int] = (0, -1)) -> list[PartitionData]:
    wanted = FetchPartition(0, -1, 0, partition_max_bytes=2**20)
    request = FetchRequest(
        max_wait_ms=0,
        session_id=session[0],
        session_epoch=session[1],
        topics=[FetchTopic("t", partitions=[wanted])],
        rack_id=rack,
    )
    return [each for topic in wire.ask(request, version).responses for each in topic.partitions]


@pytest.mark.parametrize(("rack", "version", "replica"), [("b", 12, OTHER), ("a", 12, -1), ("", 12, -1), ("b", 10, -1)])
def test_a_consumer_with_a_rack_is_sent_to_the_replica_in_its_rack(
    broker: Broker, rack: str, version: int, replica: int
) -> None:
    with Wire(broker.bootstrap_servers) as wire:
        assert wire.produce("t", b"a", acks=1).error_code == 0
        assert follow(wire, 1, 7).error_code == 0
        (data,) = fetched(wire, rack, version)
        assert (data.preferred_read_replica, data.high_watermark) == (replica, 1)
        assert values(data) == ([] if replica == OTHER else [b"a"])


def test_a_session_response_has_the_preferred_replica_although_nothing_else_changed(broker: Broker) -> None:
    with Wire(broker.bootstrap_servers) as wire:
        wanted = FetchPartition(0, -1, 0, partition_max_bytes=2**20)
        request = FetchRequest(session_epoch=0, topics=[FetchTopic("t", partitions=[wanted])], rack_id="b")
        begun = wire.ask(request, 12)
        assert begun.responses[0].partitions[0].preferred_read_replica == -1
        assert follow(wire, 0).error_code == 0
        (data,) = fetched(wire, "b", session=(begun.session_id, 1))
        assert data.preferred_read_replica == OTHER


def test_a_follower_learns_the_high_watermark_at_once_if_consumers_read_from_it(broker: Broker) -> None:
    with Wire(broker.bootstrap_servers) as follower, Wire(broker.bootstrap_servers) as wire:
        topic = wire.metadata("t").topics[0].topic_id
        assert wire.produce("t", b"a", acks=1).error_code == 0
        wanted = FetchPartition(0, 7, 1, 7, partition_max_bytes=2**20)
        request = FetchRequest(
            replica_id=OTHER, max_wait_ms=60_000, min_bytes=1, topics=[FetchTopic(topic_id=topic, partitions=[wanted])]
        )
        answer = follower.ask(request, 14).responses[0].partitions[0]
        assert (answer.high_watermark, values(answer)) == (1, [])


def test_an_unknown_replica_selector_is_rejected() -> None:
    with pytest.raises(ConfigError, match="unknown selector"):
        read_config({"replica.selector.class": "com.example.Mine"})


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    house = House(tmp_path)
    house.replicas.start()
    house.topic(ELSEWHERE, HERE)
    yield house
    house.close()


def take(house: House, *records: bytes, base: int, high_watermark: int) -> None:
    """Return the leader's response to the follower."""
    data = bytearray(batch(list(records)) if records else b"")
    data[:8] = base.to_bytes(8, "big")[: len(data[:8])]
    if data:
        data[12:16] = (4).to_bytes(4, "big")
    (followed,) = house.replicas._roles._followed.values()
    followed.handle_outcome(AppendBatches(memoryview(bytes(data)), high_watermark, 0))


def read(house: House, offset: int, *, epoch: int = -1, by_copies: bool = True) -> PartitionData:
    reader = PartitionReader(house.partitions, house.topics, house, 2**20, near=nowhere_else if by_copies else None)
    found = reader.read(FetchedPartition("t", TOPIC, FetchPartition(0, epoch, offset, partition_max_bytes=2**20)))
    if isinstance(found.records, FileSlice):
        piece = found.records
        found.records = os.pread(piece.file.fileno(), piece.size, piece.position)
    return found


def test_a_replica_is_read_up_to_its_high_watermark(house: House) -> None:
    take(house, b"a", base=0, high_watermark=0)
    assert (values(read(house, 0)), read(house, 0).high_watermark) == ([], 0)
    take(house, b"b", base=1, high_watermark=1)
    assert values(read(house, 0)) == [b"a"]
    # A consumer that comes from the leader may be ahead of this replica.
    assert (read(house, 2).error_code, values(read(house, 2))) == (0, [])
    assert read(house, 3).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    take(house, base=2, high_watermark=2)
    assert values(read(house, 1)) == [b"b"]


def test_an_old_client_or_one_with_another_leader_epoch_cannot_read_from_a_follower(house: House) -> None:
    take(house, b"a", base=0, high_watermark=1)
    assert read(house, 0, by_copies=False).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert read(house, 0, epoch=3).error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert read(house, 0, epoch=5).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
    assert values(read(house, 0, epoch=4)) == [b"a"]


def test_a_waiting_fetch_at_a_follower_is_completed_by_a_commit_or_a_new_leader(house: House) -> None:
    woken: list[int] = []

    def wait() -> None:
        fetch = WaitingFetch([house.found()], 1, lambda: woken.append(1))
        house.waiting.add(fetch, house.clock.monotonic() + 60)

    wait()
    take(house, b"a", base=0, high_watermark=0)
    house.waiting.run_due()
    assert woken == []
    take(house, base=1, high_watermark=1)
    house.waiting.run_due()
    assert woken == [1]
    wait()
    house.say(PartitionChangeRecord(0, TOPIC, leader=-1))
    house.waiting.run_due()
    assert woken == [1, 1]
