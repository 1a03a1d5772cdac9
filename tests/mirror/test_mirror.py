"""Topics, configs and groups in another cluster: each record is copied once and unchanged."""

from __future__ import annotations

import signal
import threading

import pytest

from ottla import Admin, Consumer, Producer
from ottla.client.admin import ConfigResource
from ottla.errors import ConfigError
from ottla.mirror import Mirror, MirrorSettings, Selection
from ottla.model import TopicPartition
from tests.mirror.conftest import Carry, Side
from tests.mirror.killed_mirror import run_killed
from tests.patience import eventually

Sides = tuple[Side, Side]
STEPS = 6
"""The steps of a turn: poll, begin, send, flush, write the ledger, commit."""


def test_records_are_copied_unchanged(sides: Sides, carry: Carry) -> None:
    source, target = sides
    source.make("orders", 2, retention_ms="-1", max_message_bytes="2000000")
    source.send("orders", "a", key=b"k", partition=1, timestamp=12345, headers=[("h", b"1"), ("h", None)])
    source.send("orders", None, key=b"k", partition=1, timestamp=12346)
    source.send("orders", "x" * 1_500_000, partition=0)
    carry()
    seen = [(r.partition, r.key, r.value, r.timestamp, list(r.headers)) for r in target.records("orders")]
    assert seen == [(r.partition, r.key, r.value, r.timestamp, list(r.headers)) for r in source.records("orders")]
    with Admin(bootstrap_servers=target.address) as admin:
        (configs,) = admin.describe_configs([ConfigResource("topic", "orders")]).values()
    assert (configs["retention.ms"].value, configs["max.message.bytes"].value) == ("-1", "2000000")


def test_a_second_run_copies_only_new_records(sides: Sides, carry: Carry) -> None:
    source, target = sides
    source.make("orders")
    source.send("orders", "a", "b")
    carry()
    source.send("orders", "c")
    messages: list[str] = []
    carry(messages=messages)
    assert target.values("orders") == ["a", "b", "c"]
    assert messages == []


def test_aborted_records_are_not_mirrored(sides: Sides, carry: Carry) -> None:
    source, target = sides
    source.make("orders")
    with Producer(bootstrap_servers=source.address, transactional_id="t") as producer:
        producer.init_transactions()
        for value, end in (("a", producer.commit_transaction), ("b", producer.abort_transaction)) * 2:
            producer.begin_transaction()
            producer.send("orders", value.encode())
            end()
    source.commit("billing", "orders", 8)
    mirror = carry()
    assert target.values("orders") == ["a", "a"]
    assert mirror.groups["billing"].repeats == 0


def test_kill_9_after_any_step_causes_no_gap_and_no_duplicate(sides: Sides) -> None:
    source, target = sides
    source.make("orders")
    sent = 0
    for step in range(1, STEPS + 1):  # of the first turn and of the second
        source.send("orders", *(str(number) for number in range(sent, sent + 100)))
        sent += 100
        at = step + STEPS * (step % 2)
        assert run_killed(source.address, target.address, at, "orders") == -signal.SIGKILL
    assert run_killed(source.address, target.address, 0, "orders") == 0
    assert target.values("orders") == [str(number) for number in range(sent)]


def test_a_group_that_migrates_continues_at_its_offsets(sides: Sides, carry: Carry) -> None:
    source, target = sides
    source.make("orders")
    source.send("orders", *map(str, range(10)))
    source.commit("billing", "orders", 7)
    source.commit("ended", "orders", 10)
    source.commit("left-out", "orders", 3)
    carry(Selection(without_groups=("left-.*",), prefix="west."))
    assert target.committed("billing") == {"west.orders-0": 7}
    assert target.committed("left-out") == {}
    with Consumer(bootstrap_servers=target.address, group_id="billing", auto_offset_reset="earliest") as consumer:
        consumer.subscribe(["west.orders"])
        read: list[bytes | None] = []
        while len(read) < 3:
            read += [record.value for record in consumer.poll(1.0)]
        assert read == [b"7", b"8", b"9"]
        consumer.commit()
    source.send("orders", "10")
    carry(Selection(prefix="west."))
    assert target.committed("billing") == {"west.orders-0": 11}  # which it committed there, past the marker


def test_a_running_mirror_finds_new_topics_and_partitions(sides: Sides) -> None:
    source, target = sides
    source.make("orders")
    source.send("orders", "a")
    settings = MirrorSettings(
        source={"bootstrap.servers": source.address}, target={"bootstrap.servers": target.address}, refresh_seconds=0.1
    )
    mirror = Mirror(settings)
    work = threading.Thread(target=mirror.run)
    work.start()
    try:
        with Admin(bootstrap_servers=target.address) as admin:
            eventually(lambda: "orders" in admin.list_topics())
            with Admin(bootstrap_servers=source.address) as there:
                there.create_partitions({"orders": 2})
            source.make("payments")
            source.send("payments", "p")
            source.send("orders", "b", partition=1)
            source.commit("billing", "payments", 1)
            eventually(lambda: target.committed("billing") == {"payments-0": 1})
            eventually(lambda: len(admin.describe_topics(["orders"])["orders"].partitions) == 2)
        eventually(lambda: target.values("orders") == ["a", "b"])
        assert target.values("payments") == ["p"]
    finally:
        mirror.stop()
        work.join(60)
    assert not work.is_alive()


def test_gaps_of_deleted_records_are_reported_and_a_recreated_topic_is_rejected(sides: Sides, carry: Carry) -> None:
    source, target = sides
    source.make("orders")
    source.send("orders", "a", "b")
    carry()
    source.send("orders", "c", "d", "e")
    messages: list[str] = []
    with Admin(bootstrap_servers=source.address) as admin:
        admin.delete_records({TopicPartition("orders", 0): 4})
        carry(messages=messages)
        assert messages == ["2 offsets of orders-0 were deleted in the source before they were copied"]
        assert target.values("orders") == ["a", "b", "e"]
        admin.delete_topics(["orders"])
        eventually(lambda: "orders" not in admin.list_topics())
    source.make("orders")
    with pytest.raises(ConfigError, match="ends at 0 and was copied to 5: was it created again"):
        carry()


def test_a_second_mirror_of_the_name_takes_over_from_the_first(sides: Sides) -> None:
    source, target = sides
    source.make("orders")
    source.send("orders", "a")
    address, other = {"bootstrap.servers": source.address}, {"bootstrap.servers": target.address}
    settings = MirrorSettings(source=address, target=other, once=True)

    def another(step: str) -> None:
        if step == "sent":
            Mirror(settings).run()

    with pytest.raises(ConfigError, match="another mirror of this name has taken over"):
        Mirror(settings, at=another).run()
    assert target.values("orders") == ["a"]


def test_a_cluster_is_mirrored_to_itself_only_under_other_topic_names(sides: Sides) -> None:
    source, _ = sides
    source.make("orders")
    source.send("orders", "a")
    same = {"bootstrap.servers": source.address}
    with pytest.raises(ConfigError, match="set a prefix for the target's topics"):
        Mirror(MirrorSettings(source=same, target=same, once=True)).run()
    copy = MirrorSettings(source=same, target=same, once=True, selection=Selection(prefix="copy."))
    for _ in range(2):
        Mirror(copy).run()
    assert source.values("copy.orders") == ["a"]
