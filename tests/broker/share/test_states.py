"""The share coordinator: the states of partitions, as their leaders and group coordinators read and write them."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

import pytest

from ottla.broker.coordinators.share_coordinator import coordinator_key
from ottla.broker.embedding.embedded_broker import Broker
from ottla.broker.metadata.internal_topics import SHARE_GROUP_STATE
from ottla.coordination.share.share_state import SharePartitionKey
from ottla.errors import ErrorCode
from ottla.protocol.messages.find_coordinator import FindCoordinatorRequest
from tests.broker.share.requests import (
    batches_of,
    delete_state,
    initialize_state,
    read_state,
    summarize_state,
    topic_id,
    write_state,
)
from tests.broker.wire import Wire

AVAILABLE, ACKNOWLEDGED = 0, 2


def test_a_state_is_initialized_written_and_read(wire: Wire) -> None:
    wire.create("t")
    topic = topic_id(wire)
    assert initialize_state(wire, topic, epoch=3) == 0
    assert write_state(wire, topic, (0, 4, ACKNOWLEDGED, 1), (5, 9, AVAILABLE, 2), epoch=3, leader_epoch=7) == 0
    state = read_state(wire, topic, leader_epoch=7)
    assert (state.error_code, state.state_epoch, state.start_offset) == (0, 3, 0)
    assert batches_of(state) == [(0, 4, ACKNOWLEDGED, 1), (5, 9, AVAILABLE, 2)]


def test_a_summary_has_the_start_offset_without_records(wire: Wire) -> None:
    wire.create("t")
    topic = topic_id(wire)
    assert (summarize_state(wire, topic).error_code, summarize_state(wire, topic).start_offset) == (0, -1)
    initialize_state(wire, topic, epoch=1, start=0)
    write_state(wire, topic, (3, 4, ACKNOWLEDGED, 1), epoch=1, leader_epoch=5, start=2, complete=2)
    found = summarize_state(wire, topic)
    assert (found.state_epoch, found.leader_epoch, found.start_offset, found.delivery_complete_count) == (1, 5, 2, 2)


def test_an_earlier_leader_and_an_earlier_state_are_fenced(wire: Wire) -> None:
    wire.create("t")
    topic = topic_id(wire)
    initialize_state(wire, topic, epoch=4)
    assert read_state(wire, topic, leader_epoch=2).error_code == 0
    assert write_state(wire, topic, epoch=4, leader_epoch=1) == ErrorCode.FENCED_LEADER_EPOCH
    assert read_state(wire, topic, leader_epoch=1).error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert write_state(wire, topic, epoch=3, leader_epoch=2) == ErrorCode.FENCED_STATE_EPOCH
    assert initialize_state(wire, topic, epoch=3) == ErrorCode.FENCED_STATE_EPOCH


def test_a_deleted_state_is_unknown(wire: Wire) -> None:
    wire.create("t")
    topic = topic_id(wire)
    initialize_state(wire, topic)
    assert delete_state(wire, topic) == 0
    assert read_state(wire, topic).error_code == ErrorCode.INVALID_REQUEST
    assert write_state(wire, topic) == ErrorCode.INVALID_REQUEST
    assert delete_state(wire, topic) == 0


def test_an_unknown_topic_has_no_state(wire: Wire) -> None:
    wire.create("t")
    assert initialize_state(wire, UUID(int=9)) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert initialize_state(wire, topic_id(wire), partition=1) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_states_are_there_after_a_restart(tmp_path: Path) -> None:
    with Broker(tmp_path) as broker, Wire(broker.bootstrap_servers) as wire:
        wire.create("t")
        initialize_state(wire, topic_id(wire), epoch=2)
        for offset in range(30):
            write_state(wire, topic_id(wire), (offset, offset, ACKNOWLEDGED, 1), epoch=2)
    with Broker(tmp_path) as broker, Wire(broker.bootstrap_servers) as wire:
        state = read_state(wire, topic_id(wire))
        assert (state.state_epoch, batches_of(state)) == (2, [(0, 29, ACKNOWLEDGED, 1)])


def test_the_log_is_deleted_up_to_the_oldest_snapshot(tmp_path: Path) -> None:
    settings = {
        "share_coordinator_state_topic_num_partitions": 1,
        "share_coordinator_snapshot_update_records_per_snapshot": 4,
    }
    with Broker(tmp_path, **settings) as broker, Wire(broker.bootstrap_servers) as wire:  # type: ignore[arg-type]
        wire.create("t")
        initialize_state(wire, topic_id(wire))
        for offset in range(22):
            write_state(wire, topic_id(wire), (offset, offset, ACKNOWLEDGED, 1))
        server = broker.server
        assert server is not None
        partition = server.node.partitions.find(SHARE_GROUP_STATE, 0)
        assert partition is not None
        log = partition.log
        assert (log.start_offset, log.end_offset) == (0, 23)
        server.call_soon(server.node.share_coordinator.prune)
        assert read_state(wire, topic_id(wire)).error_code == 0
        assert log.start_offset == 20
    with Broker(tmp_path) as broker, Wire(broker.bootstrap_servers) as wire:
        assert batches_of(read_state(wire, topic_id(wire))) == [(0, 21, ACKNOWLEDGED, 1)]


def test_the_coordinator_of_a_partition_is_found_by_its_key(wire: Wire) -> None:
    wire.create("t")
    key = coordinator_key(SharePartitionKey("a:group", topic_id(wire), 3))
    (found,) = wire.ask(FindCoordinatorRequest(key_type=2, coordinator_keys=[key])).coordinators
    assert (found.error_code, found.node_id, found.key) == (0, 1, key)


@pytest.mark.parametrize(
    ("key", "version"), [("g", 6), ("g:0", 6), ("g:short:0", 6), ("g:AAAAAAAAAAAAAAAAAAAAAA:x", 6), ("", 6)]
)
def test_a_malformed_key_is_rejected(wire: Wire, key: str, version: int) -> None:
    (found,) = wire.ask(FindCoordinatorRequest(key_type=2, coordinator_keys=[key]), version).coordinators
    assert found.error_code == ErrorCode.INVALID_REQUEST


def test_the_keys_of_share_groups_exist_since_version_6(wire: Wire) -> None:
    wire.create("t")
    key = coordinator_key(SharePartitionKey("g", topic_id(wire), 0))
    (found,) = wire.ask(FindCoordinatorRequest(key_type=2, coordinator_keys=[key]), 5).coordinators
    assert found.error_code == ErrorCode.INVALID_REQUEST
