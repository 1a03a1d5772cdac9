"""The topics of pipelines: written topics are created, and read topics must exist."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ottla.client.admin import Admin, NewTopic
from ottla.config import unknown
from ottla.errors import OttlaError, TopicAlreadyExistsError
from ottla.pipelines.file.reading import PipelineDefinition
from ottla.pipelines.manager.build import at_place, context_of, mistake_at
from ottla.pipelines.manager.reachability import has_listener
from ottla.pipelines.place import Mistake, PipelineFileError, Place
from ottla.pipelines.sinks.topic import TopicSinkBase
from ottla.pipelines.sources.topic import TopicBase

PATIENCE_MS = 30_000
ABSENT_MS = 1_000
"""The timeout if no process listens at any address: enough for the client to report the reason for each."""
COMPACTED = {"cleanup.policy": "compact"}
Clients = tuple[tuple[str, str], ...]


class TopicGroup(NamedTuple):
    """Pipelines with the same settings for their brokers."""

    place: Place
    """The place of the first source or sink with these settings."""
    reads: list[PipelineDefinition]


def ensure_topics(reads: Sequence[PipelineDefinition]) -> None:
    """Create the written topics; PipelineFileError if a read topic does not exist, or no broker answers."""
    mistakes: list[Mistake] = []
    for clients, group in by_clients(reads).items():
        try:
            patience_ms = PATIENCE_MS if has_listener(dict(clients)) else ABSENT_MS
            with Admin({**dict(clients), "default.api.timeout.ms": patience_ms}) as admin:
                mistakes += missing_or_made(admin, clients, group.reads)
        except OttlaError as error:
            mistakes += mistake_at(group.place, group.reads[0], error).mistakes
    if mistakes:
        raise PipelineFileError(mistakes)


def missing_or_made(admin: Admin, clients: Clients, reads: Sequence[PipelineDefinition]) -> list[Mistake]:
    """Return a mistake for each missing topic; if there is none, create the written topics."""
    there = set(admin.list_topics(internal=True))
    tables = {topic for read in reads for topic in tables_in(read)}
    new = dict.fromkeys(topic for read in reads for topic in find_written_topics(read, clients) if topic not in there)
    mistakes = [one for read in reads for one in find_missing_topics(read, clients, there.union(new))]
    for topic in () if mistakes else new:
        create(admin, topic, COMPACTED if topic in tables else {})
    return mistakes


def by_clients(reads: Iterable[PipelineDefinition]) -> dict[Clients, TopicGroup]:
    """Return the pipelines grouped by the settings for their brokers; a pipeline may be in several groups."""
    groups: dict[Clients, TopicGroup] = {}
    for read in reads:
        inputs = ((("inputs", name), part) for name, part in read.model.inputs.items())
        parts: list[tuple[tuple[str, ...], Any]] = [
            (("source",), read.model.source),
            (("sink",), read.model.sink),
            *inputs,
        ]
        if read.model.errors.dead_letter_topic is not None:
            parts.append((("errors",), read.model.dead_letter_part))
        for path, part in parts:
            if part is None or isinstance(part, TopicBase | TopicSinkBase):
                with at_place(read, *path):
                    clients = clients_of(read, part)
                group = groups.setdefault(clients, TopicGroup(read.place(*path), []))
                if read not in group.reads:
                    group.reads.append(read)
    return groups


def clients_of(read: PipelineDefinition, part: TopicBase | TopicSinkBase | None) -> Clients:
    """Return the settings for the brokers of a source or sink."""
    return tuple(sorted(context_of(read).any_client("admin", part).items()))


def create(admin: Admin, topic: str, configs: Mapping[str, str]) -> None:
    """Create a topic with the broker's defaults and these configs."""
    try:
        admin.create_topics([NewTopic(topic, -1, -1, configs)])
    except TopicAlreadyExistsError:
        pass


def tables_in(read: PipelineDefinition) -> list[str]:
    """Return the topic of the sink, if it is a table."""
    sink = read.model.sink
    return [sink.topic] if isinstance(sink, TopicSinkBase) and sink.table and sink.topic is not None else []


def find_written_topics(read: PipelineDefinition, clients: Clients) -> list[str]:
    """Return the topics at these brokers that it writes to."""
    model = read.model
    topics = []
    if isinstance(model.sink, TopicSinkBase) and clients_of(read, model.sink) == clients:
        topics += [model.sink.topic] if model.sink.topic is not None and not model.is_routed else []
    dead = model.errors.dead_letter_topic
    topics += [dead] if dead is not None and clients_of(read, model.dead_letter_part) == clients else []
    return topics


def find_missing_topics(read: PipelineDefinition, clients: Clients, there: set[str]) -> Iterable[Mistake]:
    """Yield a mistake for each read topic that does not exist. The pipeline's own dead-letter topic is not suggested."""
    near = sorted(there - {read.model.errors.dead_letter_topic})
    inputs = ((("inputs", name), part) for name, part in read.model.inputs.items())
    for path, source in ((("source",), read.model.source), *inputs):
        if isinstance(source, TopicBase) and clients_of(read, source) == clients:
            for topic in source.names():
                if topic not in there:
                    text = unknown("topic", topic, near)
                    remedy = f"create it with `ottla topics create {topic}`"
                    sentence = f"{text} If not, {remedy}" if text.endswith("?") else f"{text}; {remedy}"
                    yield Mistake(read.place(*path, "topic"), sentence)
