"""FindCoordinator, OffsetCommit, OffsetFetch: offsets of groups without members, kept in `__consumer_offsets`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from ottla.broker.embedding.embedded_broker import Broker
from ottla.errors import ErrorCode
from ottla.java_hash import positive_java_hash
from ottla.protocol.messages.delete_topics import DeleteTopicsRequest
from ottla.protocol.messages.find_coordinator import FindCoordinatorRequest
from ottla.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from ottla.protocol.schema import ZERO_UUID
from tests.broker.wire import Wire


def commit(wire: Wire, offset: int, version: int = 9, group: str = "g", topic: str = "t", **more: Any) -> int:
    partition = OffsetCommitRequestPartition(0, offset, 3 if version >= 6 else -1, "note")
    topic_id = wire.metadata(topic).topics[0].topic_id if version >= 10 else ZERO_UUID
    request = OffsetCommitRequest(group, topics=[OffsetCommitRequestTopic(topic, topic_id, [partition])], **more)
    code: int = wire.ask(request, version).topics[0].partitions[0].error_code
    return code


def committed(wire: Wire, version: int = 7, group: str = "g", topic: str = "t") -> tuple[int, str, int]:
    if version < 8:
        request = OffsetFetchRequest(group, [OffsetFetchRequestTopic(topic, [0])])
        found = wire.ask(request, version).topics[0].partitions[0]
    else:
        topic_id = wire.metadata(topic).topics[0].topic_id if version >= 10 else ZERO_UUID
        asked = OffsetFetchRequestGroup(group, topics=[OffsetFetchRequestTopics(topic, topic_id, [0])])
        found = wire.ask(OffsetFetchRequest(groups=[asked]), version).groups[0].topics[0].partitions[0]
    assert found.error_code == 0
    return found.committed_offset, found.metadata, found.committed_leader_epoch


@pytest.mark.parametrize("version", range(2, 11))
def test_an_offset_is_committed_in_every_version(wire: Wire, version: int) -> None:
    wire.create("t")
    assert commit(wire, 42, version) == 0
    assert committed(wire) == (42, "note", 3 if version >= 6 else -1)


@pytest.mark.parametrize("version", range(1, 11))
def test_an_offset_is_fetched_in_every_version(wire: Wire, version: int) -> None:
    wire.create("t")
    commit(wire, 42)
    assert committed(wire, version)[:2] == (42, "note")


@pytest.mark.parametrize("version", [1, 7, 8, 10])
def test_an_offset_without_a_commit_is_minus_1_without_an_error(wire: Wire, version: int) -> None:
    wire.create("t")
    assert committed(wire, version, group="nobody") == (-1, "", -1)


def test_a_recreated_topic_starts_without_its_predecessors_offsets(wire: Wire) -> None:
    wire.create("t")
    wire.create("u")
    commit(wire, 42)
    commit(wire, 7, topic="u")
    wire.ask(DeleteTopicsRequest(topic_names=["t"]), 5)
    wire.create("t")
    assert committed(wire) == (-1, "", -1)
    assert committed(wire, topic="u")[0] == 7


@pytest.mark.parametrize("version", [2, 7, 8, 9, 10])
def test_a_null_list_returns_all_offsets_of_a_group(wire: Wire, version: int) -> None:
    wire.create("t")
    wire.create("u")
    commit(wire, 1, topic="t")
    commit(wire, 2, topic="u")
    if version < 8:
        topics = wire.ask(OffsetFetchRequest("g", None), version).topics
    else:
        topics = (
            wire.ask(OffsetFetchRequest(groups=[OffsetFetchRequestGroup("g", topics=None)]), version).groups[0].topics
        )
    assert [topic.partitions[0].committed_offset for topic in topics] == [1, 2]


def test_offsets_of_many_groups_are_fetched_in_one_request(wire: Wire) -> None:
    wire.create("t")
    commit(wire, 1, group="a")
    commit(wire, 2, group="b")
    groups = [OffsetFetchRequestGroup(name, topics=None) for name in ("a", "b", "c")]
    response = wire.ask(OffsetFetchRequest(groups=groups), 8)
    assert [(g.group_id, len(g.topics)) for g in response.groups] == [("a", 1), ("b", 1), ("c", 0)]


@pytest.mark.parametrize(("version", "code"), [(8, ErrorCode.ILLEGAL_GENERATION), (9, ErrorCode.GROUP_ID_NOT_FOUND)])
def test_a_commit_with_a_generation_of_an_unknown_group_is_rejected(wire: Wire, version: int, code: int) -> None:
    wire.create("t")
    assert commit(wire, 1, version=version, generation_id_or_member_epoch=0) == code
    assert commit(wire, 1, version=version, generation_id_or_member_epoch=0, member_id="m") == code
    assert committed(wire)[0] == -1


def test_a_commit_with_a_generation_of_an_empty_group_is_rejected(wire: Wire) -> None:
    wire.create("t")
    commit(wire, 1)
    assert commit(wire, 2, generation_id_or_member_epoch=0) == ErrorCode.UNKNOWN_MEMBER_ID
    assert commit(wire, 2, generation_id_or_member_epoch=0, member_id="m") == ErrorCode.UNKNOWN_MEMBER_ID
    assert committed(wire)[0] == 1


def test_unknown_topics_and_long_metadata_are_rejected_and_the_other_offsets_are_committed() -> None:
    with Broker(offset_metadata_max_bytes=10) as broker, Wire(broker.bootstrap_servers) as wire:
        wire.create("t", partitions=2)
        partitions = [OffsetCommitRequestPartition(0, 5, -1, "ok"), OffsetCommitRequestPartition(1, 5, -1, "x" * 11)]
        topics = [OffsetCommitRequestTopic(name, partitions=partitions) for name in ("t", "nowhere")]
        response = wire.ask(OffsetCommitRequest("g", topics=topics), 9)
        assert [[p.error_code for p in topic.partitions] for topic in response.topics] == [
            [0, ErrorCode.OFFSET_METADATA_TOO_LARGE],
            [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * 2,
        ]
        assert committed(wire)[0] == 5


@pytest.mark.parametrize("notes", [10, 28])
def test_offsets_too_large_for_one_batch_are_rejected_permanently_without_an_effect_on_others(notes: int) -> None:
    """With the longer notes it is seen at once, with the shorter ones only once the batch is made."""
    count = 100
    with Broker(message_max_bytes=5250) as broker, Wire(broker.bootstrap_servers) as wire:
        wire.create("t", partitions=count)
        assert commit(wire, 5) == 0
        partitions = [OffsetCommitRequestPartition(number, 7, -1, "x" * notes) for number in range(count)]
        response = wire.ask(OffsetCommitRequest("g", topics=[OffsetCommitRequestTopic("t", partitions=partitions)]), 9)
        codes = {partition.error_code for partition in response.topics[0].partitions}
        assert codes == {ErrorCode.INVALID_COMMIT_OFFSET_SIZE}
        assert committed(wire)[0] == 5
        assert commit(wire, 6) == 0


def test_offsets_survive_a_restart_in_a_topic_of_50_partitions(tmp_path: Path) -> None:
    with Broker(tmp_path) as broker, Wire(broker.bootstrap_servers) as wire:
        wire.create("t")
        for offset in range(20):
            commit(wire, offset, group=f"g{offset}")
        (topic,) = wire.metadata("__consumer_offsets").topics
        assert (len(topic.partitions), topic.is_internal) == (50, True)
    with Broker(tmp_path) as broker, Wire(broker.bootstrap_servers) as wire:
        assert [committed(wire, group=f"g{offset}")[0] for offset in range(20)] == list(range(20))


@pytest.mark.parametrize("version", range(7))
def test_this_broker_is_the_coordinator_of_every_group(wire: Wire, broker: Broker, version: int) -> None:
    request = FindCoordinatorRequest(coordinator_keys=["g"]) if version >= 4 else FindCoordinatorRequest("g")
    response = wire.ask(request, version)
    found = response.coordinators[0] if version >= 4 else response
    assert (found.error_code, found.node_id, f"{found.host}:{found.port}") == (0, 1, broker.bootstrap_servers)


def test_this_broker_coordinates_transactions_too(wire: Wire) -> None:
    (found,) = wire.ask(FindCoordinatorRequest(key_type=1, coordinator_keys=["tx"])).coordinators
    assert (found.error_code, found.node_id) == (0, 1)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("", 0), ("a", 97), ("hello", 99162322), ("polygenelubricants", 0), ("그룹", 1427969), ("𝄞", 1772394)],
)
def test_the_hash_of_a_group_id_is_javas(text: str, expected: int) -> None:
    assert positive_java_hash(text) == expected


@pytest.mark.parametrize(("key_type", "topic"), [(0, "__consumer_offsets"), (1, "__transaction_state")])
@pytest.mark.parametrize("version", [1, 3, 6])
def test_a_coordinator_lookup_creates_the_coordinators_topic(
    wire: Wire, version: int, key_type: int, topic: str
) -> None:
    assert topic not in {each.name for each in wire.metadata_of_all().topics}
    keys = {"coordinator_keys": ["k"]} if version >= 4 else {"key": "k"}
    answer = wire.ask(FindCoordinatorRequest(key_type=key_type, **keys), version)
    assert (answer.coordinators[0] if version >= 4 else answer).error_code == 0
    (described,) = wire.metadata(topic).topics
    assert (described.error_code, described.is_internal, len(described.partitions)) == (0, True, 50)


def test_a_coordinator_whose_topic_cannot_be_created_is_not_available(
    wire: Wire, broker: Broker, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(file: int, data: object, position: int) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", full)
        (found,) = wire.ask(FindCoordinatorRequest(key_type=0, coordinator_keys=["g"])).coordinators
    assert (found.error_code, found.node_id) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, -1)
    assert found.error_message == "__consumer_offsets cannot be created yet"
    assert "__consumer_offsets cannot be created: the controllers returned KAFKA_STORAGE_ERROR" in caplog.text
