"""Reads the dead letters of a pipeline, and sends them again.

A dead letter has the record's key, value and headers, and Kafka Connect's headers with the cause and origin. Resent
records are written in the transaction that commits the group's offsets in the dead-letter topic (KIP-98,
`sendOffsetsToTransaction`), so each is resent exactly once, even if a process is killed.
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
from ottla.pipelines.file.reading import PipelineDefinition
from ottla.pipelines.manager.build import context_of
from ottla.pipelines.manager.reachability import ensure_reachable
from ottla.pipelines.manager.state_directory import StateDirectory
from ottla.spark.sink.dead_letters import PREFIX, STAGE

CUT = "(cut here from "
"""The mark in the reason of a dead letter with only a part of its record."""
COMMITTED = {"isolation.level": "read_committed", "enable.auto.commit": "false", "auto.offset.reset": "earliest"}


class DeadLetter(NamedTuple):
    """A record of the dead-letter topic."""

    record: ConsumerRecord
    headers: Mapping[str, str]
    """Kafka Connect's headers, by the name after their prefix."""

    @property
    def place(self) -> str:
        return f"{self.record.topic}-{self.record.partition}:{self.record.offset}"

    @property
    def stage(self) -> str:
        return self.headers.get("stage", "")

    @property
    def is_of_sink(self) -> bool:
        """True if a topic sink rejected the row, so it never was a record of a topic."""
        return self.stage == STAGE

    @property
    def came_from(self) -> str:
        """The position of the original record, or the topic that it was written to."""
        topic = self.headers.get("topic", "")
        if not topic:
            return "from the source" if self.stage == POLL else "to the sink"
        return (
            f"to {topic}"
            if self.is_of_sink
            else f"{topic}-{self.headers.get('partition')}:{self.headers.get('offset')}"
        )

    @property
    def reason(self) -> str:
        return self.headers.get("exception.message", "")

    @property
    def is_cut(self) -> bool:
        return CUT in self.reason

    @property
    def own_headers(self) -> list[tuple[str, bytes | None]]:
        """The headers of the original record."""
        return [(name, value) for name, value in self.record.headers if not name.startswith(PREFIX)]


class Sent(NamedTuple):
    """The numbers of resent dead letters, and of those that cannot be resent."""

    sent: int
    left: int


def parse_dead_letter(record: ConsumerRecord) -> DeadLetter:
    headers = {
        name.removeprefix(PREFIX): (value or b"").decode(errors="replace")
        for name, value in record.headers
        if name.startswith(PREFIX)
    }
    return DeadLetter(record, headers)


def topic_of(read: PipelineDefinition) -> str:
    """Return the dead-letter topic; ConfigError if there is none."""
    topic = read.model.errors.dead_letter_topic
    if topic is None:
        raise ConfigError(f"pipeline {read.name!r} has no dead letters: set errors.deadLetterTopic and tolerance: all")
    return topic


def clients_of(read: PipelineDefinition, face: ClientKind) -> dict[str, str]:
    """Return the settings of such a client for the brokers of the dead letters: those of the source, if that is a topic."""
    return context_of(read).any_client(face, read.model.dead_letter_part)


def names_of(read: PipelineDefinition, home: StateDirectory) -> set[str]:
    """Return the names in the headers of its dead letters: the pipeline's name, or the ids of Spark's queries."""
    return {read.name, *home.query_ids}


def read_dead_letters(read: PipelineDefinition, home: StateDirectory) -> list[DeadLetter]:
    """Return all dead letters of the pipeline, in the order of the topic's partitions."""
    topic, names = topic_of(read), names_of(read, home)
    ensure_reachable(clients_of(read, "admin"))
    with Consumer({**clients_of(read, "consumer"), **COMMITTED}) as consumer:
        found = [parse_dead_letter(record) for record in records_until_end(consumer, topic, from_start=True)]
    return [one for one in found if one.headers.get("connector.name") in names]


def records_until_end(consumer: Consumer[Any, Any], topic: str, *, from_start: bool) -> Iterator[ConsumerRecord]:
    """Yield the records up to the current end, from the beginning or from the group's offsets."""
    tps = [TopicPartition(topic, one.partition) for one in consumer.partitions_for(topic)]
    consumer.assign(tps)
    if from_start:
        consumer.seek_to_beginning(*tps)
    ends = consumer.end_offsets(tps)
    while any(consumer.position(tp) < end for tp, end in ends.items()):
        yield from consumer.poll(timeout=1)


def resend(read: PipelineDefinition, home: StateDirectory) -> Sent:
    """Send all dead letters again that were not resent before, in one transaction.

    Dead letters of other pipelines in the topic are skipped; each pipeline has its own group.
    """
    topic, names = topic_of(read), names_of(read, home)
    ensure_reachable(clients_of(read, "admin"))
    me = f"ottla-resend-{read.name}-{topic}"
    sent = left = 0
    with (
        Producer({**clients_of(read, "producer"), "transactional.id": me}) as producer,
        Consumer({**clients_of(read, "consumer"), **COMMITTED, "group.id": me}) as consumer,
    ):
        producer.init_transactions()  # fences a killed predecessor and aborts its transaction
        with producer.transaction():
            for record in records_until_end(consumer, topic, from_start=False):
                letter = parse_dead_letter(record)
                if letter.headers.get("connector.name") not in names:
                    continue
                if letter.is_cut or not letter.headers.get("topic"):  # a row rejected by a table is not a record
                    left += 1
                    continue
                send(producer, letter)
                sent += 1
            tps = consumer.assignment()
            producer.send_offsets_to_transaction({tp: consumer.position(tp) for tp in tps}, consumer.group_metadata())
    return Sent(sent, left)


def send(producer: Producer, letter: DeadLetter) -> None:
    """Send the original record, to its original partition; a row that the sink rejected has no partition, so its key chooses one."""
    partition = None if letter.is_of_sink else int(letter.headers["partition"])
    producer.send(
        letter.headers["topic"],
        letter.record.raw_value,
        key=letter.record.raw_key,
        partition=partition,
        headers=letter.own_headers,
    )
