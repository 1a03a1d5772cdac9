"""Records of share groups over real connections: acquired, acknowledged, released, rejected, renewed and given up."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.broker.embedding.embedded_broker import Broker
from ottla.errors import ErrorCode
from ottla.protocol.messages import alter_client_quotas
from ottla.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.protocol.messages.describe_client_quotas import EntityData
from ottla.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from ottla.records.columns import decode
from tests.broker.share.consumer import ACCEPT, REJECT, RELEASE, RENEW, Sharer, configure, produce_each
from tests.broker.share.requests import batches_of, join, read_state
from tests.broker.test_replicated_partitions import in_loop
from tests.broker.wire import Wire
from tests.patience import eventually

ACKNOWLEDGED, ARCHIVED = 2, 4


@pytest.fixture
def wire(tmp_path: Path) -> Iterator[Wire]:
    """A connection to a broker with the topic `t` of ten records, and with the group `g`, which reads from the start."""
    with Broker(tmp_path) as broker, Wire(broker.bootstrap_servers) as wire:
        prepare(wire)
        yield wire


def prepare(wire: Wire, count: int = 10) -> None:
    wire.create("t")
    configure(wire, {"share.auto.offset.reset": "earliest"})
    join(wire)
    produce_each(wire, count)


def another(wire: Wire) -> Wire:
    """Another connection to the same broker."""
    host, port = wire.socket.getpeername()
    return Wire(f"{host}:{port}")


def opened(wire: Wire, member: str = "a", **limits: object) -> tuple[Sharer, list[tuple[int, int, int]]]:
    """A member whose first fetches returned records, and their ranges."""
    sharer = Sharer(wire, member)
    found = sharer.fetch(max_wait_ms=5000, **limits)  # type: ignore[arg-type]
    assert found.error == 0
    return sharer, found.ranges


def test_records_are_acquired_and_accepted_once(wire: Wire) -> None:
    sharer = Sharer(wire)
    found = sharer.fetch(max_wait_ms=5000)
    assert found.ranges == [(0, 9, 1)]
    assert found.values == {number: b"%d" % number for number in range(10)}
    assert sharer.last.acquisition_lock_timeout_ms == 30_000
    assert sharer.acknowledge((0, 9, ACCEPT)) == 0
    assert sharer.fetch().ranges == []
    assert read_state(wire, sharer.topic_id).start_offset == 0


def test_a_released_record_is_delivered_again_with_the_next_count(wire: Wire) -> None:
    sharer, _ = opened(wire)
    found = sharer.fetch((0, 3, ACCEPT), (4, 5, RELEASE), (6, 9, ACCEPT))
    assert (found.ranges, found.acknowledge_error) == ([(4, 5, 2)], 0)
    assert found.values == {4: b"4", 5: b"5"}


def test_a_member_that_waits_comes_before_one_that_acknowledges_and_fetches_again(tmp_path: Path) -> None:
    with (
        Broker(tmp_path) as broker,
        Wire(broker.bootstrap_servers) as wire,
        Wire(broker.bootstrap_servers) as other,
    ):
        prepare(wire, 0)
        configure(wire, {"share.partition.max.record.locks": 100})
        for _ in range(3):
            wire.produce("t", *(b"x",) * 100)
        first, ranges = opened(wire, max_records=100)
        second = Sharer(other, "b")
        request = second.request(max_wait_ms=60_000)
        other.send(request, 2)
        eventually(lambda: is_waiting(broker))

        found = first.fetch((0, 99, ACCEPT))

        _, response = other.receive(request, 2)
        assert ranges == [(0, 99, 1)]
        assert second.taken(response).ranges == [(100, 199, 1)]
        assert (found.acknowledge_error, found.ranges) == (0, [])


def is_waiting(broker: Broker) -> bool:
    """Return True if a fetch waits."""
    found: list[int] = []
    in_loop(broker, lambda node: found.append(len(node.waiting)))
    return found[0] > 0


def test_a_rejected_record_is_never_delivered_again(wire: Wire) -> None:
    sharer, _ = opened(wire)
    assert sharer.acknowledge((0, 4, REJECT), (5, 9, RELEASE)) == 0
    assert sharer.fetch().ranges == [(5, 9, 2)]


def test_two_members_have_different_records(wire: Wire) -> None:
    first, ranges = opened(wire, max_records=4, exact=True)
    second, others = opened(wire, "b")
    assert (ranges, others) == ([(0, 3, 1)], [(4, 9, 1)])
    assert second.acknowledge((0, 3, ACCEPT)) == ErrorCode.INVALID_RECORD_STATE
    assert first.acknowledge((0, 3, ACCEPT)) == 0


def test_a_limit_of_records_is_exact_or_ends_with_a_batch(wire: Wire) -> None:
    wire.produce("t", *(b"many",) * 10)
    sharer, ranges = opened(wire, max_records=13, exact=True)
    assert ranges == [(0, 12, 1)]
    configure(wire, {"share.auto.offset.reset": "earliest"}, group="other")
    join(wire, group="other")
    other = Sharer(wire, group="other").fetch(max_wait_ms=5000, max_records=13)
    assert (sharer.close(), other.ranges[-1][1]) == (0, 19)


def test_a_fetch_waits_for_a_record(wire: Wire) -> None:
    sharer, _ = opened(wire)
    sharer.acknowledge((0, 9, ACCEPT))
    request = sharer.request(max_wait_ms=60_000)
    wire.send(request, 2)
    with another(wire) as other:
        other.produce("t", b"late")
    _, response = wire.receive(request, 2)
    assert sharer.taken(response).values == {10: b"late"}


def test_a_fetch_waits_for_a_released_record(wire: Wire) -> None:
    first, _ = opened(wire)
    with another(wire) as other:
        second = Sharer(other, "b")
        request = second.request(max_wait_ms=60_000)
        other.send(request, 2)
        assert first.acknowledge((2, 2, RELEASE)) == 0
        _, response = other.receive(request, 2)
        assert second.taken(response).ranges == [(2, 2, 2)]


def test_the_records_of_a_closed_session_are_available_and_do_not_count(wire: Wire) -> None:
    first, _ = opened(wire)
    assert first.close((0, 1, ACCEPT)) == 0
    _, ranges = opened(wire, "b")
    assert ranges[0][0] == 2
    assert {count for _, _, count in ranges} == {1}


def test_the_records_of_a_closed_connection_are_available(wire: Wire) -> None:
    with another(wire) as other:
        assert opened(other)[1] == [(0, 9, 1)]
    sharer = Sharer(wire, "b")
    assert sharer.fetch(max_wait_ms=60_000).ranges == [(0, 9, 1)]


def test_a_record_is_given_up_after_the_last_delivery(wire: Wire) -> None:
    configure(wire, {"share.delivery.count.limit": 2})
    sharer, ranges = opened(wire, max_records=1, exact=True)
    assert ranges == [(0, 0, 1)]
    assert sharer.fetch((0, 0, RELEASE), max_records=1, exact=True).ranges == [(0, 0, 2)]
    found = sharer.fetch((0, 0, RELEASE), max_records=1, exact=True)
    assert found.ranges == [(1, 1, 1)]


def test_a_group_without_a_reset_config_starts_at_the_end(wire: Wire) -> None:
    join(wire, group="late")
    sharer = Sharer(wire, group="late")
    assert sharer.fetch(max_wait_ms=200).ranges == []
    wire.produce("t", b"new")
    assert sharer.fetch(max_wait_ms=5000).ranges == [(10, 10, 1)]


@pytest.mark.parametrize(("reset", "first"), [("by_duration:P1D", 0), ("by_duration:PT0S", 10)])
def test_a_group_starts_at_a_time_before_now(wire: Wire, reset: str, first: int) -> None:
    configure(wire, {"share.auto.offset.reset": reset}, group="timed")
    join(wire, group="timed")
    sharer = Sharer(wire, group="timed")
    sharer.fetch(max_wait_ms=200)
    wire.produce("t", b"new")
    sharer.fetch((0, 9, ACCEPT) if first == 0 else (10, 10, ACCEPT), max_wait_ms=200)
    found = Sharer(wire, "b", group="timed").fetch(max_wait_ms=500)
    assert found.error == 0


def test_locks_are_renewed(wire: Wire) -> None:
    sharer, _ = opened(wire)
    assert sharer.acknowledge((0, 9, RENEW), is_renewal=True) == 0
    assert sharer.fetch((0, 9, RENEW), is_renewal=True).acknowledge_error == 0
    assert sharer.acknowledge((0, 9, RENEW)) == ErrorCode.INVALID_REQUEST
    configure(wire, {"share.renew.acknowledge.enable": "false"})
    assert sharer.acknowledge((0, 9, RENEW), is_renewal=True) == ErrorCode.INVALID_RECORD_STATE
    assert sharer.acknowledge((0, 9, ACCEPT)) == 0


def test_acknowledged_twice_not_held_and_malformed_records_are_errors(wire: Wire) -> None:
    sharer, _ = opened(wire, max_records=5, exact=True)
    assert sharer.acknowledge((1, 1, ACCEPT)) == 0
    assert sharer.acknowledge((1, 1, ACCEPT)) == ErrorCode.INVALID_RECORD_STATE
    assert sharer.acknowledge((7, 7, ACCEPT)) == ErrorCode.INVALID_REQUEST
    assert sharer.acknowledge((70, 77, ACCEPT)) == ErrorCode.INVALID_REQUEST
    assert sharer.acknowledge((3, 3, ACCEPT), (2, 2, ACCEPT)) == ErrorCode.INVALID_REQUEST
    assert sharer.acknowledge((3, 2, ACCEPT)) == ErrorCode.INVALID_REQUEST
    assert sharer.acknowledge((2, 2, 9)) == ErrorCode.INVALID_REQUEST
    assert sharer.acknowledge((0, 0, ACCEPT), (2, 4, ACCEPT)) == 0


def test_a_session_has_its_epochs(wire: Wire) -> None:
    sharer, _ = opened(wire)
    assert sharer.fetch(epoch=7).error == ErrorCode.INVALID_SHARE_SESSION_EPOCH
    assert sharer.acknowledge((0, 0, ACCEPT), epoch=0) == ErrorCode.INVALID_SHARE_SESSION_EPOCH
    assert sharer.fetch((0, 0, ACCEPT), epoch=0).error == ErrorCode.INVALID_REQUEST
    stranger = Sharer(wire, "b")
    assert stranger.fetch(epoch=3).error == ErrorCode.SHARE_SESSION_NOT_FOUND
    assert stranger.acknowledge(epoch=-1) == ErrorCode.SHARE_SESSION_NOT_FOUND
    assert sharer.acknowledge((0, 9, ACCEPT)) == 0


def test_there_are_only_so_many_sessions(tmp_path: Path) -> None:
    with Broker(tmp_path, group_share_max_share_sessions=1) as broker, Wire(broker.bootstrap_servers) as wire:
        prepare(wire)
        first, _ = opened(wire)
        assert Sharer(wire, "b").fetch().error == ErrorCode.SHARE_SESSION_LIMIT_REACHED
        first.close()
        assert Sharer(wire, "b").fetch().error == 0


def test_a_lock_that_expires_gives_the_record_to_another_member(tmp_path: Path) -> None:
    short = {"group_share_min_record_lock_duration_ms": 1000, "group_share_record_lock_duration_ms": 1000}
    with Broker(tmp_path, **short) as broker, Wire(broker.bootstrap_servers) as wire:  # type: ignore[arg-type]
        prepare(wire)
        slow, ranges = opened(wire)
        with another(wire) as other:
            assert Sharer(other, "b").fetch(max_wait_ms=60_000).ranges == [(0, 9, 2)]
        assert (ranges, slow.acknowledge((0, 9, ACCEPT))) == ([(0, 9, 1)], ErrorCode.INVALID_RECORD_STATE)


def test_ten_thousand_records_in_flight_fill_the_window(tmp_path: Path) -> None:
    limits = {
        "group_share_partition_max_record_locks": 10_000,
        "group_share_max_partition_max_record_locks": 10_000,
    }
    with Broker(tmp_path, **limits) as broker, Wire(broker.bootstrap_servers) as wire:  # type: ignore[arg-type]
        prepare(wire, 0)
        for _ in range(12):
            wire.produce("t", *(b"x",) * 1000)
        sharer, ranges = opened(wire, max_records=20_000, max_bytes=1 << 24, batch_size=1000)
        assert (ranges[0][0], ranges[-1][1]) == (0, 9999)
        assert sharer.fetch(max_wait_ms=50).ranges == []
        assert sharer.acknowledge(*((offset, offset, ACCEPT) for offset in range(0, 10_000, 2))) == 0
        assert sharer.fetch((1, 1, ACCEPT), max_records=20_000).ranges[0][0] == 10_000


def test_ten_thousand_records_are_acknowledged_one_by_one_from_the_last_to_the_first(tmp_path: Path) -> None:
    limits = {
        "group_share_partition_max_record_locks": 10_000,
        "group_share_max_partition_max_record_locks": 10_000,
    }
    with Broker(tmp_path, **limits) as broker, Wire(broker.bootstrap_servers) as wire:  # type: ignore[arg-type]
        prepare(wire, 0)
        for _ in range(10):
            wire.produce("t", *(b"x",) * 1000)
        sharer, _ = opened(wire, max_records=20_000, max_bytes=1 << 24, batch_size=1000)
        for last in range(9999, -1, -500):
            assert sharer.acknowledge(*((offset, offset, ACCEPT) for offset in range(last - 499, last + 1))) == 0
        wire.produce("t", b"next")
        assert sharer.fetch().ranges == [(10_000, 10_000, 1)]
        assert Sharer(wire, "b").fetch().ranges == []


def test_a_member_that_holds_records_for_ever_does_not_stop_the_others(tmp_path: Path) -> None:
    with Broker(tmp_path) as broker, Wire(broker.bootstrap_servers) as wire:
        prepare(wire)
        holder, held = opened(wire, max_records=2, exact=True)
        other = Sharer(wire, "b")
        assert (held, other.fetch(max_records=100).ranges) == ([(0, 1, 1)], [(2, 9, 1)])
        for _ in range(8):
            assert holder.acknowledge((0, 1, RENEW), is_renewal=True) == 0
        assert other.acknowledge((2, 9, ACCEPT)) == 0
        produce_each(wire, 3, first=10)
        assert other.fetch().ranges == [(10, 12, 1)]
        assert holder.acknowledge((0, 1, ACCEPT)) == 0


def test_records_that_no_member_acknowledges_are_given_up_at_the_delivery_limit(tmp_path: Path) -> None:
    with Broker(tmp_path) as broker, Wire(broker.bootstrap_servers) as wire:
        prepare(wire)
        configure(wire, {"share.delivery.count.limit": 2})
        silent, ranges = opened(wire)
        expire_locks(broker)
        again = []
        while (
            found := silent.fetch().ranges
        ):  # fewer at a time, so that one bad record does not use up the others' attempts
            again += found
        assert (ranges, {count for _, _, count in again}) == ([(0, 9, 1)], {2})
        assert {offset for first, last, _ in again for offset in range(first, last + 1)} == set(range(10))
        expire_locks(broker)
        wire.produce("t", b"next")
        assert Sharer(wire, "b").fetch().ranges == [(10, 10, 1)]
        assert silent.acknowledge((0, 0, ACCEPT)) == 0  # given up already, and ignored


def test_an_acknowledgement_after_the_lock_expired_does_not_touch_the_next_delivery(tmp_path: Path) -> None:
    with Broker(tmp_path) as broker, Wire(broker.bootstrap_servers) as wire:
        prepare(wire)
        slow, _ = opened(wire)
        expire_locks(broker)
        assert slow.acknowledge((0, 9, ACCEPT)) == ErrorCode.INVALID_RECORD_STATE
        other = Sharer(wire, "b")
        assert other.fetch().ranges == [(0, 9, 2)]
        assert slow.acknowledge((0, 9, REJECT)) == ErrorCode.INVALID_RECORD_STATE
        assert other.acknowledge((9, 9, ACCEPT)) == 0
        assert other.acknowledge((0, 8, ACCEPT)) == 0
        assert slow.fetch().ranges == []


def expire_locks(broker: Broker) -> None:
    """Let the locks of all members expire now."""
    in_loop(broker, lambda node: node.share_partitions.expire_locks("g"))


def test_an_acknowledgement_survives_a_killed_broker(tmp_path: Path) -> None:
    with Broker(tmp_path, process=True) as broker, Wire(broker.bootstrap_servers) as wire:
        prepare(wire)
        sharer, _ = opened(wire)
        assert sharer.acknowledge((0, 5, ACCEPT), (7, 7, REJECT)) == 0
        kill(broker)
    with Broker(tmp_path) as broker, Wire(broker.bootstrap_servers) as wire:
        _, ranges = opened(wire, "b")
        assert ranges == [(6, 6, 1), (8, 9, 1)]


def kill(broker: Broker) -> None:
    os.kill(broker.pid, signal.SIGKILL)


def test_a_partition_of_a_deleted_topic_is_unknown(wire: Wire) -> None:
    sharer, _ = opened(wire)
    wire.ask(DeleteTopicsRequest([DeleteTopicState("t")]))
    eventually(lambda: sharer.acknowledge((0, 9, ACCEPT)) == ErrorCode.UNKNOWN_TOPIC_ID)
    assert sharer.fetch().error == ErrorCode.UNKNOWN_TOPIC_ID


def test_an_unknown_partition_is_an_error(wire: Wire) -> None:
    sharer = Sharer(wire)
    sharer.fetch(partitions=[0, 5], max_wait_ms=5000)
    codes = {each.partition_index: each.error_code for topic in sharer.last.responses for each in topic.partitions}
    assert codes[5] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def raise_share_version(wire: Wire) -> None:
    raised = FeatureUpdateKey("share.version", 2, upgrade_type=1)
    assert wire.ask(UpdateFeaturesRequest(feature_updates=[raised]), 2).error_code == 0


def copied_records(wire: Wire, topic: str) -> list[tuple[bytes | None, dict[str, bytes | None]]]:
    """Return the values and headers of the records in a dead letter queue."""
    columns = decode(bytes(wire.fetch(topic).records or b""))
    return [(columns.value(row), dict(columns.headers(row))) for row in range(columns.count)]


def test_rejected_records_are_copied_to_the_dead_letter_queue(wire: Wire) -> None:
    raise_share_version(wire)
    wire.create("dlq.t", errors_deadletterqueue_group_enable="true")
    configure(
        wire,
        {"errors.deadletterqueue.topic.name": "dlq.t", "errors.deadletterqueue.copy.record.enable": "true"},
    )
    sharer, _ = opened(wire)
    assert sharer.acknowledge((2, 3, REJECT)) == 0
    eventually(lambda: copied_records(wire, "dlq.t"))
    copied = copied_records(wire, "dlq.t")
    assert [value for value, _ in copied] == [b"2", b"3"]
    headers = copied[0][1]
    assert (headers["__dlq.errors.topic"], headers["__dlq.errors.offset"]) == (b"t", b"2")
    assert (headers["__dlq.errors.group"], headers["__dlq.errors.delivery.count"]) == (b"g", b"1")


def test_a_missing_dead_letter_queue_is_created_if_the_broker_may(tmp_path: Path) -> None:
    with (
        Broker(tmp_path, errors_deadletterqueue_auto_create_topics_enable=True) as broker,
        Wire(broker.bootstrap_servers) as wire,
    ):
        prepare(wire)
        raise_share_version(wire)
        configure(wire, {"errors.deadletterqueue.topic.name": "dlq.new"})
        sharer, _ = opened(wire)
        assert sharer.acknowledge((2, 3, REJECT), (5, 5, REJECT)) == 0
        eventually(lambda: wire.metadata("dlq.new").topics[0].error_code == 0)
        eventually(lambda: len(copied_records(wire, "dlq.new")) == 3)
        assert [value for value, _ in copied_records(wire, "dlq.new")] == [None] * 3


@pytest.mark.parametrize(
    ("topic", "reason"),
    [
        ("letters", "does not start with 'dlq.' (errors.deadletterqueue.topic.name.prefix)"),
        ("dlq.missing", "create it, or set errors.deadletterqueue.auto.create.topics.enable=true"),
        ("dlq.ordinary", "set errors.deadletterqueue.group.enable=true"),
    ],
)
def test_records_are_given_up_without_a_copy_and_the_reason_is_logged(
    wire: Wire, caplog: pytest.LogCaptureFixture, topic: str, reason: str
) -> None:
    raise_share_version(wire)
    wire.create("dlq.ordinary")
    configure(wire, {"errors.deadletterqueue.topic.name": topic})
    sharer, _ = opened(wire)
    assert sharer.acknowledge((0, 9, REJECT)) == 0
    eventually(lambda: reason in caplog.text)
    eventually(lambda: [batch[2] for batch in batches_of(read_state(wire, sharer.topic_id))] in ([ARCHIVED], []))


def test_a_share_fetch_counts_for_the_quota_of_consumers(wire: Wire) -> None:
    component = EntityData("client-id", None)
    operation = alter_client_quotas.OpData("consumer_byte_rate", 1.0, False)
    entry = alter_client_quotas.RequestEntryData([component], [operation])
    assert wire.ask(alter_client_quotas.AlterClientQuotasRequest([entry], False)).entries[0].error_code == 0
    sharer, ranges = opened(wire)
    assert ranges
    assert sharer.last.throttle_time_ms > 0


def test_states_of_acknowledged_records_are_persisted(wire: Wire) -> None:
    sharer, _ = opened(wire)
    sharer.acknowledge((5, 9, ACCEPT))
    assert batches_of(read_state(wire, sharer.topic_id)) == [(5, 9, ACKNOWLEDGED, 1)]
