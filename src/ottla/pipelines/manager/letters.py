"""The dead letters of a pipeline: looked at, and sent again.

A letter has the record's key, value and headers, and headers of Kafka Connect's that say what was wrong and where it came from.
What is sent again goes in the transaction that commits how far the letters were read: exactly once, whoever is killed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from ottla.client.config.setting_owners import ClientKind
from ottla.client.consumer import Consumer
from ottla.client.consumer.record import ConsumerRecord
from ottla.client.producer import Producer
from ottla.errors import ConfigError
from ottla.model import TopicPartition
from ottla.pipelines.dead_letters import POLL
from ottla.pipelines.file.reading import Read
from ottla.pipelines.manager.build import surroundings_of
from ottla.pipelines.manager.home import Home
from ottla.pipelines.manager.reachability import ensure_reachable
from ottla.spark.sink.dead_letters import PREFIX, STAGE

CUT = "(cut here from "
"""What the reason says of a letter that is not all of its record."""
COMMITTED = {"isolation.level": "read_committed", "enable.auto.commit": "false", "auto.offset.reset": "earliest"}


class Letter(NamedTuple):
    """A record of the dead-letter topic."""

    record: ConsumerRecord
    told: Mapping[str, str]
    """Connect's headers, by what follows their prefix."""

    @property
    def place(self) -> str:
        return f"{self.record.topic}-{self.record.partition}:{self.record.offset}"

    @property
    def stage(self) -> str:
        return self.told.get("stage", "")

    @property
    def is_of_sink(self) -> bool:
        """Whether the sink's topic refused it; it never was in a topic."""
        return self.stage == STAGE

    @property
    def came_from(self) -> str:
        """The record it was, or the topic that it was to go to."""
        topic = self.told.get("topic", "")
        if not topic:
            return "from the source" if self.stage == POLL else "to the sink"
        return f"to {topic}" if self.is_of_sink else f"{topic}-{self.told.get('partition')}:{self.told.get('offset')}"

    @property
    def reason(self) -> str:
        return self.told.get("exception.message", "")

    @property
    def is_cut(self) -> bool:
        return CUT in self.reason

    @property
    def own_headers(self) -> list[tuple[str, bytes | None]]:
        """Those that the record had."""
        return [(name, value) for name, value in self.record.headers if not name.startswith(PREFIX)]


class Sent(NamedTuple):
    """What became of letters."""

    sent: int
    left: int


def letter_of(record: ConsumerRecord) -> Letter:
    told = {
        name.removeprefix(PREFIX): (value or b"").decode(errors="replace")
        for name, value in record.headers
        if name.startswith(PREFIX)
    }
    return Letter(record, told)


def topic_of(read: Read) -> str:
    """The topic of its letters."""
    topic = read.model.errors.dead_letter_topic
    if topic is None:
        raise ConfigError(f"pipeline {read.name!r} has no dead letters: set errors.deadLetterTopic and tolerance: all")
    return topic


def clients_of(read: Read, face: ClientKind) -> dict[str, str]:
    """The settings of such a client for the brokers that have its letters: those of its source, if that is a topic."""
    return surroundings_of(read).any_client(face, read.model.letters_part)


def names_of(read: Read, home: Home) -> set[str]:
    """What its letters are signed with: its name, or Spark's of its query."""
    return {read.name, *home.query_ids}


def letters_of(read: Read, home: Home) -> list[Letter]:
    """All of them, in the order of their topic's partitions."""
    topic, names = topic_of(read), names_of(read, home)
    ensure_reachable(clients_of(read, "admin"))
    with Consumer({**clients_of(read, "consumer"), **COMMITTED}) as consumer:
        found = [letter_of(record) for record in records_until_end(consumer, topic, from_start=True)]
    return [one for one in found if one.told.get("connector.name") in names]


def records_until_end(consumer: Consumer[Any, Any], topic: str, *, from_start: bool) -> Iterator[ConsumerRecord]:
    """What is there now, from the beginning or from the group's offsets on."""
    tps = [TopicPartition(topic, one.partition) for one in consumer.partitions_for(topic)]
    consumer.assign(tps)
    if from_start:
        consumer.seek_to_beginning(*tps)
    ends = consumer.end_offsets(tps)
    while any(consumer.position(tp) < end for tp, end in ends.items()):
        yield from consumer.poll(timeout=1)


def resend(read: Read, home: Home) -> Sent:
    """Put back what was not put back before, in one transaction.

    Letters of other pipelines in the same topic are passed over, as each pipeline has a group of its own.
    """
    topic, names = topic_of(read), names_of(read, home)
    ensure_reachable(clients_of(read, "admin"))
    me = f"ottla-resend-{read.name}-{topic}"
    sent = left = 0
    with (
        Producer({**clients_of(read, "producer"), "transactional.id": me}) as producer,
        Consumer({**clients_of(read, "consumer"), **COMMITTED, "group.id": me}) as consumer,
    ):
        producer.init_transactions()  # ends what one that was killed has left open, and shuts it out
        with producer.transaction():
            for record in records_until_end(consumer, topic, from_start=False):
                letter = letter_of(record)
                if letter.told.get("connector.name") not in names:
                    continue
                if letter.is_cut or not letter.told.get("topic"):  # a row that a table refused is no record any more
                    left += 1
                    continue
                send(producer, letter)
                sent += 1
            tps = consumer.assignment()
            producer.send_offsets_to_transaction({tp: consumer.position(tp) for tp in tps}, consumer.group_metadata())
    return Sent(sent, left)


def send(producer: Producer, letter: Letter) -> None:
    """As it was, to the partition that it was in; what the sink refused goes where its key leads it."""
    partition = None if letter.is_of_sink else int(letter.told["partition"])
    producer.send(
        letter.told["topic"],
        letter.record.raw_value,
        key=letter.record.raw_key,
        partition=partition,
        headers=letter.own_headers,
    )
