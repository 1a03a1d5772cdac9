"""CreateTopics and DeleteTopics: what is answered is already true."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.broker.embedding.embedded_broker import Broker
from ottla.errors import ErrorCode
from ottla.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from ottla.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from tests.broker.wire import Wire, values
from tests.patience import eventually


@pytest.mark.parametrize("version", range(2, 8))
def test_a_topic_exists_when_its_creation_is_answered(wire: Wire, version: int) -> None:
    topic = CreatableTopic("t", 2, 1, configs=[CreatableTopicConfig("retention.ms", "1000")])
    (result,) = wire.ask(CreateTopicsRequest([topic]), version).topics
    assert (result.name, result.error_code) == ("t", 0)
    assert len(wire.metadata("t").topics[0].partitions) == 2
    if version >= 5:
        assert (result.num_partitions, result.replication_factor) == (2, 1)
    if version >= 7:
        assert result.topic_id == wire.metadata("t").topics[0].topic_id


def test_a_validated_topic_is_not_created(wire: Wire) -> None:
    (result,) = wire.ask(CreateTopicsRequest([CreatableTopic("t", 1, 1)], validate_only=True)).topics
    assert result.error_code == 0
    assert wire.metadata("t").topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_defaults_are_those_of_the_broker() -> None:
    with Broker(num_partitions=4) as broker, Wire(broker.bootstrap_servers) as wire:
        wire.ask(CreateTopicsRequest([CreatableTopic("t", -1, -1)]))
        assert len(wire.metadata("t").topics[0].partitions) == 4


def test_each_topic_has_its_own_result(wire: Wire) -> None:
    wire.create("there")
    wished = [
        CreatableTopic("good", 1, 1),
        CreatableTopic("there", 1, 1),
        CreatableTopic("bad name", 1, 1),
        CreatableTopic("none", 0, 1),
        CreatableTopic("copies", 1, 3),
        CreatableTopic("config", 1, 1, configs=[CreatableTopicConfig("retention.mss", "1")]),
        CreatableTopic("__cluster_metadata", 1, 1),
    ]
    results = {result.name: result for result in wire.ask(CreateTopicsRequest(wished)).topics}
    assert {name: result.error_code for name, result in results.items()} == {
        "good": 0,
        "there": ErrorCode.TOPIC_ALREADY_EXISTS,
        "bad name": ErrorCode.INVALID_TOPIC_EXCEPTION,
        "none": ErrorCode.INVALID_PARTITIONS,
        "copies": ErrorCode.INVALID_REPLICATION_FACTOR,
        "config": ErrorCode.INVALID_CONFIG,
        "__cluster_metadata": ErrorCode.INVALID_TOPIC_EXCEPTION,
    }
    assert "did you mean 'retention.ms'" in str(results["config"].error_message)


@pytest.mark.behaviour("B8")
@pytest.mark.parametrize("version", range(1, 7))
def test_a_topic_is_removed_when_its_deletion_is_answered(wire: Wire, version: int) -> None:
    wire.create("t")
    wire.produce("t", b"a")
    request = DeleteTopicsRequest([DeleteTopicState("t")]) if version >= 6 else DeleteTopicsRequest(topic_names=["t"])
    (result,) = wire.ask(request, version).responses
    assert (result.name, result.error_code) == ("t", 0)
    assert wire.metadata("t").topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert wire.fetch("t").error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_topic_is_deleted_by_its_id_and_a_new_one_of_its_name_is_empty(wire: Wire) -> None:
    wire.create("t")
    wire.produce("t", b"old")
    first = wire.metadata("t").topics[0].topic_id
    (result,) = wire.ask(DeleteTopicsRequest([DeleteTopicState(None, first)])).responses
    assert (result.error_code, result.name) == (0, "t")
    wire.create("t")
    assert wire.metadata("t").topics[0].topic_id != first
    assert wire.produce("t", b"new").base_offset == 0
    assert values(wire.fetch("t")) == [b"new"]


def test_the_files_of_a_deleted_topic_are_deleted(tmp_path: Path) -> None:
    with Broker(tmp_path) as broker, Wire(broker.bootstrap_servers) as wire:
        wire.create("t")
        wire.produce("t", b"a")
        assert (tmp_path / "t-0").is_dir()
        wire.ask(DeleteTopicsRequest([DeleteTopicState("t")]))
        eventually(lambda: not list(tmp_path.glob("t-0*")))


def test_unknown_topics_cannot_be_deleted_and_deletion_can_be_disabled(wire: Wire) -> None:
    (result,) = wire.ask(DeleteTopicsRequest([DeleteTopicState("t")])).responses
    assert result.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    with Broker(delete_topic_enable=False) as strict, Wire(strict.bootstrap_servers) as other:
        other.create("t")
        (result,) = other.ask(DeleteTopicsRequest([DeleteTopicState("t")])).responses
        assert result.error_code == ErrorCode.TOPIC_DELETION_DISABLED
        assert other.metadata("t").topics[0].error_code == 0
