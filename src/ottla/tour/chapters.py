"""The steps of each chapter and their explanations. A step is yielded after it happened."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

from ottla.tour.stage import TOPIC, TourStage, wait_until

PARTITIONS = 4


class TourStep(NamedTuple):
    look: str
    """The client.id of the client to draw."""
    text: str


class Chapter(NamedTuple):
    title: str
    play: Callable[[TourStage], Iterator[TourStep]]


def first_poll(stage: TourStage) -> Iterator[TourStep]:
    stage.broker(PARTITIONS)
    reader = stage.reader("reader-1")
    yield TourStep(
        "reader-1",
        "A consumer has subscribed to a topic and not polled yet. It has not spoken to its group: its coordinator is "
        "unjoined, and no heartbeat is sent.",
    )
    reader.resume_polling()
    wait_until(lambda: reader.partition_count == PARTITIONS, "the first poll")
    yield TourStep(
        "reader-1",
        "Inside poll it found the broker that coordinates its group, joined, and was assigned all four partitions. From now "
        "on a background thread sends heartbeats, and a Fetch waits at the broker for records.",
    )
    with stage.producer("writer") as writer:
        for number in range(100):
            writer.send(TOPIC, b"an order", key=b"%d" % number)
    wait_until(lambda: reader.count == 100, "reading")
    yield TourStep(
        "reader-1",
        "A hundred records were written, and the Fetch that waited was answered at once. Its response was split by "
        "partition into completedFetches, and poll returned the records: see the time line with every event.",
    )
    reader.stop()
    yield TourStep(
        "reader-1",
        "It was closed: it committed its position and left its group, so no member has to wait for its session to "
        "end. The next member continues at that position.",
    )


class Texts(NamedTuple):
    """The texts of the same steps for one of three assignment protocols."""

    alone: str
    joined: str
    left: str


def rebalance(stage: TourStage, settings: dict[str, str], texts: Texts) -> Iterator[TourStep]:
    """Play a rebalance in which a second member joins and leaves."""
    stage.broker(PARTITIONS)
    first, second = stage.reader("reader-1", **settings), stage.reader("reader-2", **settings)
    first.resume_polling()
    wait_until(lambda: first.partition_count == PARTITIONS, "joining")
    yield TourStep("reader-1", texts.alone)
    second.resume_polling()
    wait_until(lambda: (first.partition_count, second.partition_count) == (2, 2), "sharing out")
    yield TourStep("reader-1", texts.joined)
    second.stop()
    wait_until(lambda: first.partition_count == PARTITIONS, "taking over")
    yield TourStep("reader-1", texts.left)


EAGER = Texts(
    "One member has all four partitions. It uses the classic protocol with an eager assignor: at each change, every member "
    "gives up all partitions and joins again.",
    "A second member joined. The first was notified by its heartbeat, gave up all four partitions, joined again, and was "
    "given two; between these two moments no member read anything.",
    "The second member left, and the same happened again: revoked, joined, assigned. See the order in the time line.",
)
COOPERATIVE = Texts(
    "One member has all four partitions. Its assignor is cooperative-sticky: a member that keeps a partition continues to read it while "
    "the group rebalances (KIP-429).",
    "A second member joined. It took two rounds: in the first the first member gave up only the two partitions that move, "
    "in the second they were assigned to the new member; the other two were read all the time.",
    "The second member left, and nothing had to be given up: its two partitions were added to those of the first.",
)
CONSUMER = Texts(
    "One member has all four partitions. With group.protocol=consumer the coordinator assigns partitions (KIP-848): there is no "
    "JoinGroup and no leader, every change is sent in the response to a heartbeat.",
    "A second member joined. The coordinator revoked two partitions of the first in a heartbeat response, and assigned them "
    "to the second afterwards; no member waited for another, only the moved partitions paused.",
    "The second member left with its last heartbeat. The next response to the first one had its partitions.",
)


def static_member(stage: TourStage) -> Iterator[TourStep]:
    stage.broker(PARTITIONS)
    readers = [stage.reader(f"reader-{n}", group_instance_id=f"till-{n}") for n in (1, 2)]
    for reader in readers:
        reader.resume_polling()
    wait_until(lambda: [each.partition_count for each in readers] == [2, 2], "sharing out")
    generation = readers[0].generation
    yield TourStep(
        "reader-1",
        f"Two members with a group.instance.id share four partitions in generation {generation}. Such a member is known by "
        "that name, not by an id that the coordinator creates for each process (KIP-345).",
    )
    readers[1].stop()
    yield TourStep(
        "reader-1",
        "reader-2 was closed, as for a new version of the program, and did not leave the group. Its partitions stay assigned to it "
        "until session.timeout.ms is over: nothing happens to reader-1.",
    )
    again = stage.reader("reader-2", group_instance_id="till-2")
    again.resume_polling()
    wait_until(lambda: again.partition_count == 2, "coming back")
    yield TourStep(
        "reader-2",
        "It has joined again under its name and got the same two partitions at once. The generation of reader-1 was "
        f"{generation} before and is {readers[0].generation} now: there was no rebalance.",
    )


def slow_poll(stage: TourStage) -> Iterator[TourStep]:
    stage.broker(PARTITIONS)
    reader = stage.reader("reader-1", max_poll_interval_ms=5_000)
    reader.resume_polling()
    wait_until(lambda: reader.partition_count == PARTITIONS, "joining")
    yield TourStep(
        "reader-1",
        "A member with a max.poll.interval.ms of 5 s; the default is five minutes. Watch the poll gap in the box of "
        "the heartbeat thread, and continue: then the program will be busy for longer than that.",
    )
    reader.pause_polling()
    wait_until(lambda: reader.state == "unjoined", "leaving")
    yield TourStep(
        "reader-1",
        "The program did not call poll for more than 5 s. The heartbeat thread, which runs independently of the program, "
        "left the group on its behalf, so that other members can read its partitions.",
    )
    reader.resume_polling()
    wait_until(lambda: reader.state == "stable", "joining again")
    yield TourStep(
        "reader-1",
        "Its next poll reported the lost partitions, and joined again. Records that it had not committed by then "
        "are read again: long work needs a longer interval, or a smaller max.poll.records.",
    )


def retry(stage: TourStage) -> Iterator[TourStep]:
    broker = stage.broker(1)
    writer = stage.producer("writer", retry_backoff_ms=1_000, retry_backoff_max_ms=1_000)
    writer.send(TOPIC, b"first").result(60)
    yield TourStep(
        "writer",
        "A producer has written one record. It is idempotent, which is the default: the broker assigned it a producer id, and its "
        "batches are numbered for each partition.",
    )
    broker.faults.drop_answer("Produce", times=1)
    writer.send(TOPIC, b"second").result(60)
    yield TourStep(
        "writer",
        "The broker wrote the second record, and the connection broke before the response. The producer could not know this, "
        "and sent the same batch with the same number again.",
    )
    yield TourStep(
        "writer",
        f"The topic ends at offset {stage.end()}: the broker recognized the sequence number, and responded without writing "
        "again. With enable.idempotence=false the record would be there twice.",
    )


def transaction(stage: TourStage) -> Iterator[TourStep]:
    stage.broker(1)
    reader = stage.reader("reader-1", isolation_level="read_committed")
    reader.resume_polling()
    wait_until(lambda: reader.partition_count == 1, "joining")
    writer = stage.producer("writer", transactional_id="bills")
    writer.init_transactions()
    writer.begin_transaction()
    writer.send(TOPIC, b"a mistake").result(60)
    yield TourStep(
        "writer",
        "A transaction is open, and its first record is in the log already. A reader with isolation.level=read_committed "
        f"received {reader.count} records: it stops at the last stable offset, where the open transaction starts.",
    )
    writer.abort_transaction()
    yield TourStep(
        "writer",
        "It was aborted: the coordinator stored this and wrote a marker after the record. The record stays in the log, and "
        "consumers with read_committed skip it.",
    )
    writer.begin_transaction()
    writer.send(TOPIC, b"a bill").result(60)
    writer.commit_transaction()
    wait_until(lambda: reader.count == 1, "reading what is committed")
    yield TourStep(
        "reader-1",
        f"A second transaction was committed, and the reader received its one record. Yet the log ends at offset {stage.end()}: "
        "two records and the two markers, which also occupy offsets.",
    )


def lost_leader(stage: TourStage) -> Iterator[TourStep]:
    cluster = stage.cluster()
    writer = stage.producer("writer", acks="all")
    writer.send(TOPIC, b"before").result(60)
    leader = stage.leader()
    yield TourStep(
        "writer",
        f"Three brokers have a replica of the partition each, and broker {leader} leads it. With acks=all a record counts as written "
        "when all in-sync replicas have it.",
    )
    cluster.kill(leader)
    writer.send(TOPIC, b"after").result(60)
    wait_until(lambda: stage.leader() not in (-1, leader), "electing a leader")
    yield TourStep(
        "writer",
        f"Broker {leader} was killed. The controller elected broker {stage.leader()} as leader; the producer lost its connection, requested "
        "the metadata again, and sent the record there.",
    )
    yield TourStep(
        "writer",
        f"The partition ends at offset {stage.end()}: no record is missing or duplicated. It has two in-sync replicas "
        "until the broker has restarted and caught up.",
    )


CHAPTERS = {
    "first-poll": Chapter("The first poll", first_poll),
    "eager": Chapter(
        "A rebalance, eager", partial(rebalance, settings={"partition_assignment_strategy": "range"}, texts=EAGER)
    ),
    "cooperative": Chapter(
        "A rebalance, cooperative",
        partial(rebalance, settings={"partition_assignment_strategy": "cooperative-sticky"}, texts=COOPERATIVE),
    ),
    "consumer": Chapter(
        "A rebalance by KIP-848", partial(rebalance, settings={"group_protocol": "consumer"}, texts=CONSUMER)
    ),
    "static-member": Chapter("A static member restarts", static_member),
    "slow-poll": Chapter("A slow poll", slow_poll),
    "retry": Chapter("An idempotent retry", retry),
    "transaction": Chapter("A transaction, aborted and committed", transaction),
    "lost-leader": Chapter("A leader fails", lost_leader),
}
