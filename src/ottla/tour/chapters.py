"""What happens in each chapter, and what it means. A step has happened when it is told."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

from ottla.tour.stage import TOPIC, Stage, until

PARTITIONS = 4


class Step(NamedTuple):
    look: str
    """The client.id of who is to be looked at."""
    text: str


class Chapter(NamedTuple):
    title: str
    play: Callable[[Stage], Iterator[Step]]


def first_poll(stage: Stage) -> Iterator[Step]:
    stage.broker(PARTITIONS)
    reader = stage.reader("reader-1")
    yield Step(
        "reader-1",
        "A consumer has subscribed to a topic and not polled yet. It has not spoken to its group: its coordinator is "
        "unjoined, and no heartbeat is sent.",
    )
    reader.wake()
    until(lambda: reader.partition_count == PARTITIONS, "the first poll")
    yield Step(
        "reader-1",
        "Inside poll it found the broker that coordinates its group, joined, and was given all four partitions. From now "
        "on a thread of its own sends heartbeats, and a Fetch waits at the broker for records.",
    )
    with stage.producer("writer") as writer:
        for number in range(100):
            writer.send(TOPIC, b"an order", key=b"%d" % number)
    until(lambda: reader.count == 100, "reading")
    yield Step(
        "reader-1",
        "A hundred records were written, and the Fetch that waited was answered at once. Its answer was cut up by "
        "partition into completedFetches, and poll handed the records out: see the time line with every event.",
    )
    reader.stop()
    yield Step(
        "reader-1",
        "It was closed: it committed how far it had read and left its group, so nobody has to wait for its session to "
        "end. Who joins the group next goes on from there.",
    )


class Texts(NamedTuple):
    """What three ways of sharing out say of the same events."""

    alone: str
    joined: str
    left: str


def rebalance(stage: Stage, settings: dict[str, str], texts: Texts) -> Iterator[Step]:
    """A second member comes and goes."""
    stage.broker(PARTITIONS)
    first, second = stage.reader("reader-1", **settings), stage.reader("reader-2", **settings)
    first.wake()
    until(lambda: first.partition_count == PARTITIONS, "joining")
    yield Step("reader-1", texts.alone)
    second.wake()
    until(lambda: (first.partition_count, second.partition_count) == (2, 2), "sharing out")
    yield Step("reader-1", texts.joined)
    second.stop()
    until(lambda: first.partition_count == PARTITIONS, "taking over")
    yield Step("reader-1", texts.left)


EAGER = Texts(
    "One member has all four partitions. It uses the classic protocol with an eager assignor: whatever changes, everybody "
    "gives up everything and joins anew.",
    "A second member came. The first learnt of it by its heartbeat, gave up all four partitions, joined again, and was "
    "given two; between those two moments nobody read anything.",
    "The second member left, and the same happened again: revoked, joined, assigned. See the order in the time line.",
)
COOPERATIVE = Texts(
    "One member has all four partitions. Its assignor is cooperative-sticky: who keeps a partition goes on reading it while "
    "the group rebalances (KIP-429).",
    "A second member came. It took two rounds: in the first the first member gave up only the two partitions that move, "
    "in the second they were given to the newcomer; the other two were read all the time.",
    "The second member left, and nothing had to be given up: its two partitions were added to those of the first.",
)
CONSUMER = Texts(
    "One member has all four partitions. With group.protocol=consumer the coordinator shares out (KIP-848): there is no "
    "JoinGroup and no leader, every change comes as an answer to a heartbeat.",
    "A second member came. The coordinator told the first in a heartbeat's answer to give up two partitions, and gave them "
    "to the second once it had; no member waited for another, only what moves had a pause.",
    "The second member said with its last heartbeat that it leaves. The next answer to the first one had its partitions.",
)


def static_member(stage: Stage) -> Iterator[Step]:
    stage.broker(PARTITIONS)
    readers = [stage.reader(f"reader-{n}", group_instance_id=f"till-{n}") for n in (1, 2)]
    for reader in readers:
        reader.wake()
    until(lambda: [each.partition_count for each in readers] == [2, 2], "sharing out")
    generation = readers[0].generation
    yield Step(
        "reader-1",
        f"Two members with a group.instance.id share four partitions in generation {generation}. Such a member is known by "
        "that name, not by an id that the coordinator gives to each process (KIP-345).",
    )
    readers[1].stop()
    yield Step(
        "reader-1",
        "reader-2 was closed, as for a new version of the program, and did not leave the group. Its partitions stay its own "
        "until session.timeout.ms is over: nothing happens to reader-1.",
    )
    again = stage.reader("reader-2", group_instance_id="till-2")
    again.wake()
    until(lambda: again.partition_count == 2, "coming back")
    yield Step(
        "reader-2",
        "It is back under its name and got the same two partitions at once. The generation of reader-1 was "
        f"{generation} before and is {readers[0].generation} now: there was no rebalance.",
    )


def slow_poll(stage: Stage) -> Iterator[Step]:
    stage.broker(PARTITIONS)
    reader = stage.reader("reader-1", max_poll_interval_ms=5_000)
    reader.wake()
    until(lambda: reader.partition_count == PARTITIONS, "joining")
    yield Step(
        "reader-1",
        "A member whose max.poll.interval.ms is 5 s, where the default is five minutes. Watch the poll gap in the box of "
        "the heartbeat thread, and go on: then the program will be busy for longer than that.",
    )
    reader.sleep()
    until(lambda: reader.state == "unjoined", "leaving")
    yield Step(
        "reader-1",
        "The program stayed away from poll for more than 5 s. The heartbeat thread, which runs whatever the program does, "
        "left the group on its behalf, so that others can go on with its partitions.",
    )
    reader.wake()
    until(lambda: reader.state == "stable", "joining again")
    yield Step(
        "reader-1",
        "With its next poll it learnt that it had lost its partitions, and joined anew. What it had not committed by then "
        "is read again: work that takes long wants a longer interval, or a smaller max.poll.records.",
    )


def retry(stage: Stage) -> Iterator[Step]:
    broker = stage.broker(1)
    writer = stage.producer("writer", retry_backoff_ms=1_000, retry_backoff_max_ms=1_000)
    writer.send(TOPIC, b"first").result(60)
    yield Step(
        "writer",
        "A producer has written one record. It is idempotent, which is the default: the coordinator gave it an id, and its "
        "batches are numbered for each partition.",
    )
    broker.faults.drop_answer("Produce", times=1)
    writer.send(TOPIC, b"second").result(60)
    yield Step(
        "writer",
        "The broker wrote the second record, and the connection broke in place of the answer. The producer could not know, "
        "and sent the same batch with the same number again.",
    )
    yield Step(
        "writer",
        f"The topic ends at offset {stage.end()}: the broker saw that it had the number already, and answered without writing "
        "again. With enable.idempotence=false the record would be there twice.",
    )


def transaction(stage: Stage) -> Iterator[Step]:
    stage.broker(1)
    reader = stage.reader("reader-1", isolation_level="read_committed")
    reader.wake()
    until(lambda: reader.partition_count == 1, "joining")
    writer = stage.producer("writer", transactional_id="bills")
    writer.init_transactions()
    writer.begin_transaction()
    writer.send(TOPIC, b"a mistake").result(60)
    yield Step(
        "writer",
        "A transaction is open, and its first record is in the log already. A reader with isolation.level=read_committed "
        f"was handed {reader.count} records: it stops at the last stable offset, where the open transaction begins.",
    )
    writer.abort_transaction()
    yield Step(
        "writer",
        "It was aborted: the coordinator noted so and wrote a marker behind the record. The record stays in the log, and "
        "who reads what is committed passes it over.",
    )
    writer.begin_transaction()
    writer.send(TOPIC, b"a bill").result(60)
    writer.commit_transaction()
    until(lambda: reader.count == 1, "reading what is committed")
    yield Step(
        "reader-1",
        f"A second transaction was committed, and the reader was handed its one record. Yet the log ends at offset {stage.end()}: "
        "two records and the two markers, which take offsets, too.",
    )


def lost_leader(stage: Stage) -> Iterator[Step]:
    cluster = stage.cluster()
    writer = stage.producer("writer", acks="all")
    writer.send(TOPIC, b"before").result(60)
    leader = stage.leader()
    yield Step(
        "writer",
        f"Three brokers have a copy of the partition each, and broker {leader} leads it. With acks=all a record counts as written "
        "when all copies in sync have it.",
    )
    cluster.kill(leader)
    writer.send(TOPIC, b"after").result(60)
    until(lambda: stage.leader() not in (-1, leader), "electing a leader")
    yield Step(
        "writer",
        f"Broker {leader} was killed. The controller noticed and had broker {stage.leader()} lead; the producer lost its connection, asked "
        "for the metadata again, and sent the record there.",
    )
    yield Step(
        "writer",
        f"The partition ends at offset {stage.end()}: nothing is missing and nothing is there twice. Its copies in sync are two "
        "until the broker is back and has caught up.",
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
