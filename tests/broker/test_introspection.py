"""The introspection socket of a broker: lines of JSON."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ottla import Admin, Broker, Consumer, NewTopic, Producer, TopicPartition
from ottla.broker.event_loop.loop_call import NotInTime, call_in_loop
from ottla.broker.introspection.broker_snapshot import percentile_ms
from ottla.coordination.replication.assignment import ReplicaAssignment
from ottla.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from ottla.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from tests.broker.test_replicated_partitions import ALL, EPOCH, ME, OTHER, in_loop
from tests.broker.wire import Wire, produce
from tests.patience import PATIENCE
from tests.storage.compacting import keyed

LONG_MS = 600_000
EAGER: dict[str, Any] = {"log_cleaner_backoff_ms": 20, "log_cleaner_min_cleanable_ratio": 0.0}


class Looking:
    """A client of the introspection socket, from its first line on."""

    def __init__(self, folder: Path) -> None:
        (path,) = folder.glob("broker-*.sock")
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(PATIENCE)
        self._socket.connect(str(path))
        self._lines = self._socket.makefile("rb")
        self.hello = json.loads(self._lines.readline())
        self.reported: list[dict[str, Any]] = []
        """Events."""
        self.next()  # it is listened to from now on

    def next(self) -> dict[str, Any]:
        """Return the latest state; events are kept."""
        frame = json.loads(self._lines.readline())
        self.reported += frame["events"]
        return frame["snapshot"] or {}

    def until(self, condition: Any) -> Any:
        """The first picture of which that is true."""
        deadline = time.monotonic() + PATIENCE
        while not (seen := self.next()) or not condition(seen):
            assert time.monotonic() < deadline, seen
        return seen

    def until_told(self, kind: str, words: str = "") -> dict[str, Any]:
        """The first event of that kind with these words."""
        looked, deadline = 0, time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            for event in self.reported[looked:]:
                if event["event"] == kind and words in event["text"]:
                    return event
            looked = len(self.reported)
            self.next()
        raise AssertionError(f"no {kind} with {words!r} in {self.reported}")

    def close(self) -> None:
        self._lines.close()
        self._socket.close()


@pytest.fixture
def broker(short_path: Path) -> Iterator[Broker]:
    with Broker(
        trace_folder=str(short_path / "window"),
        offsets_topic_num_partitions=1,
        group_initial_rebalance_delay_ms=0,
        **EAGER,
    ) as broker:
        yield broker


@pytest.fixture
def looking(broker: Broker, short_path: Path) -> Iterator[Looking]:
    looking = Looking(short_path / "window")
    yield looking
    looking.close()


@pytest.fixture
def wire(broker: Broker) -> Iterator[Wire]:
    with Wire(broker.bootstrap_servers) as wire:
        yield wire


def join(group: str, member: str, client: str = "slow") -> JoinGroupRequest:
    protocols = [JoinGroupRequestProtocol(name="range", metadata=b"")]
    return JoinGroupRequest(group, LONG_MS, LONG_MS, member, None, "consumer", protocols)


def test_the_view_names_the_broker_and_its_cluster(looking: Looking, broker: Broker) -> None:
    with Admin(broker.client_settings()) as admin:
        cluster = admin.describe_cluster().cluster_id
    assert (looking.hello["kind"], looking.hello["client_id"]) == ("broker", "broker 1")
    assert looking.hello["cluster"] == cluster


def test_every_state_of_a_group_is_reported_with_its_cause(looking: Looking, broker: Broker) -> None:
    with Consumer(broker.client_settings(), group_id="g", client_id="one") as consumer:
        with Admin(broker.client_settings()) as admin:
            admin.create_topics([NewTopic("orders", 1)])
        consumer.subscribe(["orders"])
        while not consumer.assignment():
            consumer.poll(0.05)
        looking.until_told("GroupNoted", "sent the assignment")
        states = [event["facts"]["state"] for event in looking.reported if event["event"] == "GroupNoted"]
        assert [state for state in states if state != "Empty"] == [
            "PreparingRebalance",
            "CompletingRebalance",
            "Stable",
        ]
        seen = looking.until(lambda seen: seen["groups"] and seen["groups"][0]["state"] == "Stable")
    (group,) = seen["groups"]
    (member,) = group["members"]
    assert (group["group"], group["kind"], group["epoch"], group["protocol"]) == ("g", "classic", 1, "range")
    assert " joins" in group["cause"]
    assert (member["member_id"], member["client_id"], member["waits_for"]) == (group["leader"], "one", "")
    assert member["session_ms"] > 0


def test_joined_members_wait_for_the_missing_ones_until_a_deadline(
    looking: Looking, wire: Wire, broker: Broker
) -> None:
    named = wire.ask(join("g", ""), 4).member_id
    joined = wire.ask(join("g", named), 4)
    assert joined.error_code == 0
    with Wire(broker.bootstrap_servers) as other:
        newcomer = other.ask(join("g", ""), 4).member_id
        seen = looking.until(lambda seen: len(members_of(seen, "g")) == 2)
        waits = {member["member_id"]: member["waits_for"] for member in seen["groups"][0]["members"]}
        assert waits == {
            named: "must assign the partitions",
            newcomer: "received this id, and must join with it",
        }
        other.send(join("g", newcomer), 4)
        seen = looking.until(lambda seen: seen["groups"][0]["state"] == "PreparingRebalance")
    waits = {member["member_id"]: member["waits_for"] for member in seen["groups"][0]["members"]}
    assert waits == {named: "must rejoin", newcomer: "has joined, and waits for the others"}
    assert 0 < seen["groups"][0]["left_ms"] <= LONG_MS


def test_a_waiting_fetch_is_shown_with_its_missing_bytes_and_reported_until_its_end(
    looking: Looking, wire: Wire, broker: Broker
) -> None:
    wire.create("orders")
    request = FetchRequest(
        max_wait_ms=LONG_MS, min_bytes=1, topics=[FetchTopic("orders", partitions=[FetchPartition(0, fetch_offset=0)])]
    )
    with Wire(broker.bootstrap_servers) as reader:
        reader.send(request, 11)
        begun = looking.until_told("WaitBegun")
        seen = looking.until(lambda seen: seen["waiting"])
        wire.ask(produce("orders", keyed([(b"k", b"v")])), 11)
        over = looking.until_told("WaitOver")
        looking.until(lambda seen: not seen["waiting"])
    (waiting,) = seen["waiting"]
    assert (waiting["api"], waiting["missing_bytes"]) == ("Fetch", 1)
    assert any("orders-0" in place for place in waiting["places"])
    assert waiting["since_ms"] >= 0
    assert 0 < waiting["left_ms"] <= LONG_MS
    assert begun["facts"]["missing_bytes"] == 1
    assert over["facts"]["reached"] is True


def test_a_waiting_produce_is_shown_with_the_lagging_replica(looking: Looking, broker: Broker, wire: Wire) -> None:
    wire.create("orders")
    assignment = ReplicaAssignment(ME, EPOCH, 0, (ME, OTHER), frozenset({ME, OTHER}), 1)

    def lead(node: Any) -> None:
        node.lead(node.partitions.find("orders", 0), assignment, ALL)

    in_loop(broker, lead)
    with Wire(broker.bootstrap_servers) as writer:
        writer.send(produce("orders", keyed([(b"k", b"v")]), acks=-1), 11)
        seen = looking.until(lambda seen: any(each["api"] == "Produce" for each in seen["waiting"]))
    (waiting,) = [each for each in seen["waiting"] if each["api"] == "Produce"]
    assert waiting["places"] == ["orders-0"]
    (log,) = [each for each in seen["partitions"] if each["partition"] == "orders-0"]
    assert (log["leads"], log["high_watermark"], log["log_end"]) == (True, 0, 1)
    (copy,) = log["replicas"]
    assert (copy["broker"], copy["log_end"], copy["in_sync"]) == (OTHER, -1, True)


def test_segments_are_shown_and_compactions_reported(looking: Looking, wire: Wire) -> None:
    wire.create("compacted", cleanup_policy="compact", segment_bytes=1 << 20)
    for number in range(4):
        wire.ask(produce("compacted", keyed([(b"k%d" % (number % 2), b"x" * (1 << 19))])), 11)
    begun = looking.until_told("CleaningBegun", "compacted-0")
    done = looking.until_told("Compacted", "compacted-0")
    seen = looking.until(lambda seen: any(log["partition"] == "compacted-0" for log in seen["cleaner"]["logs"]))
    assert begun["facts"]["dirty_ratio"] == 1.0
    assert done["facts"]["bytes_left"] <= done["facts"]["bytes_before"]
    (log,) = [each for each in seen["partitions"] if each["partition"] == "compacted-0"]
    assert [segment["active"] for segment in log["segments"]][-1] is True
    assert sum(segment["size_bytes"] for segment in log["segments"]) == log["size_bytes"]


def test_a_new_segment_is_reported(looking: Looking, wire: Wire) -> None:
    wire.create("orders", segment_bytes=1 << 20)
    wire.ask(produce("orders", keyed([(b"k", b"x")])), 11)
    looking.until(lambda seen: any(log["partition"] == "orders-0" for log in seen["partitions"]))
    for _ in range(3):
        wire.ask(produce("orders", keyed([(b"k", b"x" * (1 << 19))])), 11)
    rolled = looking.until_told("SegmentRolled", "orders-0: a new segment begins at offset ")
    assert 0 < rolled["facts"]["base_offset"] < 4


def test_a_replica_that_leaves_the_isr_is_reported(looking: Looking, broker: Broker, wire: Wire) -> None:
    wire.create("orders")
    wire.ask(produce("orders", keyed([(b"k", b"v")])), 11)
    for partition_epoch, in_sync in enumerate([{ME, OTHER}, {ME}]):
        assignment = ReplicaAssignment(ME, EPOCH, partition_epoch, (ME, OTHER), frozenset(in_sync), 1)

        def lead(node: Any, to: ReplicaAssignment = assignment) -> None:
            node.lead(node.partitions.find("orders", 0), to, ALL)

        in_loop(broker, lead)
        looking.until(lambda seen, now=in_sync: copies_in_sync(seen) == now - {ME})
    changed = looking.until_told("InSyncChanged")
    assert (changed["facts"]["before"], changed["facts"]["now"]) == ([ME, OTHER], [ME])
    assert changed["text"] == f"orders-0: in sync are {ME} (without {OTHER})"


def copies_in_sync(seen: dict[str, Any]) -> set[int]:
    """Other brokers' copies of the one topic."""
    copies = [copy for log in seen["partitions"] if log["partition"] == "orders-0" for copy in log["replicas"]]
    return {copy["broker"] for copy in copies if copy["in_sync"]} if copies else {-1}


def test_a_waiting_request_is_identified_by_its_correlation_id(looking: Looking, broker: Broker) -> None:
    with Admin(broker.client_settings()) as admin:
        admin.create_topics([NewTopic("orders")])
    settings = {**broker.client_settings(), "client.id": "reader", "fetch.max.wait.ms": 400}
    with Consumer(settings) as consumer:
        consumer.assign([TopicPartition("orders", 0)])
        known, waits = set[int](), set[int]()
        deadline = time.monotonic() + PATIENCE
        while not known & waits:  # each fetch has its own
            assert time.monotonic() < deadline, (known, waits)
            consumer.poll(0.01)
            in_flight = consumer.snapshot().network.in_flight_requests.values()
            known |= {each.correlation_id for requests in in_flight for each in requests if each.api == "Fetch"}
            waits |= {each["correlation_id"] for each in looking.next()["waiting"] if each["client_id"] == "reader"}
    begun = looking.until_told("WaitBegun", "Fetch of reader waits")
    assert begun["facts"]["correlation_id"] >= 0


def test_the_number_of_requests_per_client_is_shown(looking: Looking, broker: Broker) -> None:
    with Admin({**broker.client_settings(), "client.id": "asker"}) as admin:
        admin.create_topics([NewTopic("orders")])
        # The versions and the topic: the reported state may be from between the two.
        looking.until(
            lambda seen: any(each["client_id"] == "asker" and each["requests"] >= 2 for each in seen["clients"])
        )


def test_response_times_are_shown_per_api(looking: Looking, wire: Wire) -> None:
    wire.create("orders")
    wire.ask(produce("orders", keyed([(b"k", b"v")])), 11)
    seen = looking.until(lambda seen: any(each["api"] == "Produce" for each in seen["requests"]))
    (produced,) = [each for each in seen["requests"] if each["api"] == "Produce"]
    assert produced["answers"] == 1
    assert seen["connections"] >= 1


def test_percentiles_are_the_bounds_of_buckets() -> None:
    buckets = [("0.5", 50.0), ("1.0", 98.0), ("+Inf", 100.0)]
    assert [percentile_ms(buckets, share) for share in (0.5, 0.95, 0.99)] == [500.0, 1000.0, None]


def test_nothing_is_measured_without_an_observer_and_no_socket_is_open_without_the_setting(
    broker: Broker,
) -> None:
    active: list[bool] = []
    in_loop(broker, lambda node: active.append(node.waiting.events.active or node.cleaning.events.active))
    assert active == [False]
    before = windows()
    with Broker() as closed, Producer(closed.client_settings()) as producer:
        producer.send("t", b"v").result()
        assert windows() == before
    assert len(before) == 1


def windows() -> set[str]:
    """The introspection threads of brokers in this process."""
    return {thread.name for thread in threading.enumerate() if thread.name.startswith("ottla-trace-broker")}


def test_a_blocked_event_loop_is_not_waited_for() -> None:
    with pytest.raises(NotInTime):
        call_in_loop(lambda work: None, lambda: 1, 0.0)


def test_an_error_in_the_event_loop_is_raised_in_the_caller() -> None:
    with pytest.raises(ZeroDivisionError):
        call_in_loop(lambda work: work(), lambda: 1 // 0, 1.0)


def test_a_consumer_group_member_waits_for_partitions_that_another_has_to_revoke(
    looking: Looking, broker: Broker, wire: Wire
) -> None:
    def beat(member: str, epoch: int) -> Any:
        owned: list[Any] | None = None if epoch else []  # no news of what it has, or nothing yet
        request = ConsumerGroupHeartbeatRequest(
            "new",
            member,
            epoch,
            rebalance_timeout_ms=LONG_MS,
            subscribed_topic_names=["orders"],
            topic_partitions=owned,
        )
        answer = wire.ask(request, 1)
        assert answer.error_code == 0
        return answer.member_epoch

    wire.create("orders", partitions=2)
    first = beat("first", 0)
    second = beat("second", 0)
    beat("first", first)
    beat("second", second)
    seen = looking.until(
        lambda seen: any("must revoke orders-" in each["waits_for"] for each in members_of(seen, "new"))
    )
    waits = {member["member_id"]: member["waits_for"] for member in members_of(seen, "new")}
    assert waits["first"].startswith("must revoke orders-")
    assert waits["second"].startswith("waits for orders-")
    assert waits["second"].endswith(" of first")


def members_of(seen: dict[str, Any], name: str) -> list[dict[str, Any]]:
    return [member for group in seen["groups"] if group["group"] == name for member in group["members"]]
