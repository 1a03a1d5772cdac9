"""Topics of pipelines: those that are written to are made, those that are read must be there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ottla.client.admin import Admin, NewTopic
from ottla.config import unknown
from ottla.errors import OttlaError, TopicAlreadyExistsError
from ottla.pipelines.file.reading import Read
from ottla.pipelines.manager.build import mistake_at, placed, surroundings_of
from ottla.pipelines.manager.reachability import is_anybody_there
from ottla.pipelines.place import Mistake, PipelineFileError, Place
from ottla.pipelines.sinks.topic import TopicSinkBase
from ottla.pipelines.sources.topic import TopicBase

PATIENCE_MS = 30_000
ABSENT_MS = 1_000
"""Where nobody listens at any address: what a client takes to say of each why it cannot be reached."""
COMPACTED = {"cleanup.policy": "compact"}
Clients = tuple[tuple[str, str], ...]


class Group(NamedTuple):
    """Pipelines that reach brokers in the same way."""

    place: Place
    """Of the first source or sink that does."""
    reads: list[Read]


def ensure_topics(reads: Sequence[Read]) -> None:
    """Make what pipelines write to; PipelineFileError where a topic that one reads is not there, or no broker answers."""
    mistakes: list[Mistake] = []
    for clients, group in by_clients(reads).items():
        try:
            patience_ms = PATIENCE_MS if is_anybody_there(dict(clients)) else ABSENT_MS
            with Admin({**dict(clients), "default.api.timeout.ms": patience_ms}) as admin:
                mistakes += missing_or_made(admin, clients, group.reads)
        except OttlaError as error:
            mistakes += mistake_at(group.place, group.reads[0], error).mistakes
    if mistakes:
        raise PipelineFileError(mistakes)


def missing_or_made(admin: Admin, clients: Clients, reads: Sequence[Read]) -> list[Mistake]:
    """What is not there; where nothing is missing, all that is written to is made."""
    there = set(admin.list_topics(internal=True))
    tables = {topic for read in reads for topic in tables_in(read)}
    new = dict.fromkeys(topic for read in reads for topic in written(read, clients) if topic not in there)
    mistakes = [one for read in reads for one in missing(read, clients, there.union(new))]
    for topic in () if mistakes else new:
        create(admin, topic, COMPACTED if topic in tables else {})
    return mistakes


def by_clients(reads: Iterable[Read]) -> dict[Clients, Group]:
    """The pipelines by how their brokers are reached; one may have several."""
    groups: dict[Clients, Group] = {}
    for read in reads:
        inputs = ((("inputs", name), part) for name, part in read.model.inputs.items())
        parts: list[tuple[tuple[str, ...], Any]] = [
            (("source",), read.model.source),
            (("sink",), read.model.sink),
            *inputs,
        ]
        if read.model.errors.dead_letter_topic is not None:
            parts.append((("errors",), read.model.letters_part))
        for path, part in parts:
            if part is None or isinstance(part, TopicBase | TopicSinkBase):
                with placed(read, *path):
                    clients = clients_of(read, part)
                group = groups.setdefault(clients, Group(read.place(*path), []))
                if read not in group.reads:
                    group.reads.append(read)
    return groups


def clients_of(read: Read, part: TopicBase | TopicSinkBase | None) -> Clients:
    """How the brokers of a source or sink are reached."""
    return tuple(sorted(surroundings_of(read).any_client("admin", part).items()))


def create(admin: Admin, topic: str, configs: Mapping[str, str]) -> None:
    """With the broker's own settings, but for these."""
    try:
        admin.create_topics([NewTopic(topic, -1, -1, configs)])
    except TopicAlreadyExistsError:
        pass


def tables_in(read: Read) -> list[str]:
    """The topic of its sink, where that is a table."""
    sink = read.model.sink
    return [sink.topic] if isinstance(sink, TopicSinkBase) and sink.table and sink.topic is not None else []


def written(read: Read, clients: Clients) -> list[str]:
    """The topics there that it writes to."""
    model = read.model
    topics = []
    if isinstance(model.sink, TopicSinkBase) and clients_of(read, model.sink) == clients:
        topics += [model.sink.topic] if model.sink.topic is not None and not model.routed else []
    dead = model.errors.dead_letter_topic
    topics += [dead] if dead is not None and clients_of(read, model.letters_part) == clients else []
    return topics


def missing(read: Read, clients: Clients, there: set[str]) -> Iterable[Mistake]:
    """Topics that it reads and that are not there; its own dead letters are not what was meant."""
    near = sorted(there - {read.model.errors.dead_letter_topic})
    inputs = ((("inputs", name), part) for name, part in read.model.inputs.items())
    for path, source in ((("source",), read.model.source), *inputs):
        if isinstance(source, TopicBase) and clients_of(read, source) == clients:
            for topic in source.names():
                if topic not in there:
                    told = unknown("topic", topic, near)
                    remedy = f"make it with `ottla topics create {topic}`"
                    sentence = f"{told} If not, {remedy}" if told.endswith("?") else f"{told}; {remedy}"
                    yield Mistake(read.place(*path, "topic"), sentence)
