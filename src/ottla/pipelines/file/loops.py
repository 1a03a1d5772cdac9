"""Finds loops of pipelines: rows that return to the pipeline that wrote them, and are read and written without end.

Two pipelines are connected by data that one writes and the other reads: topics of the same brokers, a folder of files,
a table of a database. Names that are known only at run time, such as topics of a router over a pattern, are ignored.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from ottla.errors import ConfigError
from ottla.pipelines.address import without_secrets
from ottla.pipelines.file.document import Path
from ottla.pipelines.pipeline_context import SERVERS, PipelineContext, text_of
from ottla.pipelines.place import Mistake
from ottla.pipelines.sinks.database import DatabaseSink
from ottla.pipelines.sinks.files import FilesSink
from ottla.pipelines.sinks.spark import SparkSink
from ottla.pipelines.sinks.topic import TopicSinkBase
from ottla.pipelines.sources.database import DatabaseSource
from ottla.pipelines.sources.files import FilesSource
from ottla.pipelines.sources.postgres_cdc import PostgresCdcSource
from ottla.pipelines.sources.topic import TopicBase
from ottla.pipelines.transforms.connect.routers import RegexRouter, Router
from ottla.spark.ranges.java_pattern import java_pattern

if TYPE_CHECKING:
    from ottla.pipelines.file.reading import PipelineDefinition

KEY = "allowLoop"
REMEDY = f"choose another, or set {KEY}: true if a transform ends the loop"


class WrittenName(NamedTuple):
    """A topic, folder or table that a pipeline writes to."""

    kind: str
    where: frozenset[str]
    """The addresses of the brokers or the server; empty for folders."""
    name: str
    at: Path
    """The location of the name in the pipeline."""
    text: str
    """A short description for messages."""


class ReadNames(NamedTuple):
    """The topics, folder or table that a pipeline reads."""

    kind: str
    where: frozenset[str]
    has: Callable[[str], bool]
    """True for a name that is read."""
    pattern: str | None
    """The topic pattern, if the source has one."""


class PipelineEdge(NamedTuple):
    """A connection from the pipeline that writes to one that reads."""

    writer: PipelineDefinition
    written: WrittenName
    reader: PipelineDefinition
    wanted: ReadNames


def find_loops(reads: Sequence[PipelineDefinition]) -> Iterator[Mistake]:
    """Yield each loop once, at the place where it is closed; a pipeline with `allowLoop` is in none."""
    known = [read for read in reads if not read.model.allow_loop]
    edges = [edge for writer in known for edge in edges_of(writer, known)]
    reported: set[frozenset[int]] = set()
    for read in known:
        for edge in (one for one in edges if one.writer is read and one.reader is read):
            yield Mistake(read.place(*edge.written.at), own_loop(edge))
        ring = shortest_ring(read, [one for one in edges if one.writer is not one.reader])
        members = frozenset(id(edge.writer) for edge in ring)
        if ring and members not in reported:
            reported.add(members)
            yield Mistake(read.place(*ring[0].written.at), ring_sentence(ring))


def own_loop(edge: PipelineEdge) -> str:
    """Return the sentence about a pipeline that reads what it writes."""
    written, pattern = edge.written, edge.wanted.pattern
    by = f", which topicPattern {pattern!r} matches" if pattern is not None else ""
    return f"pipeline {edge.writer.name!r} reads {written.text}{by}, and writes to it: its rows would return without end; {REMEDY}"


def ring_sentence(ring: Sequence[PipelineEdge]) -> str:
    """Return the sentence about pipelines that read from each other."""
    steps = ", ".join(
        f"{edge.writer.name!r} writes {edge.written.text}, which {edge.reader.name!r} reads" for edge in ring
    )
    return f"pipelines read from each other in a ring: {steps}: rows would circulate without end; {REMEDY}"


def shortest_ring(start: PipelineDefinition, edges: Iterable[PipelineEdge]) -> list[PipelineEdge]:
    """Return the edges of the shortest way from a pipeline back to it; none if there is no way."""
    by_writer: dict[int, list[PipelineEdge]] = {}
    for edge in edges:
        by_writer.setdefault(id(edge.writer), []).append(edge)
    ways, seen = deque[list[PipelineEdge]]([[]]), {id(start)}
    while ways:
        way = ways.popleft()
        for edge in by_writer.get(id(way[-1].reader if way else start), ()):
            if edge.reader is start:
                return [*way, edge]
            if id(edge.reader) not in seen:
                seen.add(id(edge.reader))
                ways.append([*way, edge])
    return []


def edges_of(writer: PipelineDefinition, readers: Iterable[PipelineDefinition]) -> Iterator[PipelineEdge]:
    """Yield a connection for each reader and each written name that it reads."""
    places = list(find_written_names(writer))
    for reader in readers:
        wanted = list(find_read_names(reader))
        for written in places:
            found = next((one for one in wanted if is_reading(written, one)), None)
            if found is not None:
                yield PipelineEdge(writer, written, reader, found)


def is_reading(written: WrittenName, wanted: ReadNames) -> bool:
    same_place = written.where == wanted.where or bool(written.where & wanted.where)
    return written.kind == wanted.kind and same_place and wanted.has(written.name)


def find_written_names(read: PipelineDefinition) -> Iterator[WrittenName]:
    model, context = read.model, context_of(read)
    sink: Any = model.sink
    if isinstance(sink, TopicSinkBase):
        for name in map(context.resolve, topics_of_sink(read)):
            at: Path = ("sink", "topic") if sink.topic is not None else ("sink",)
            yield WrittenName("topic", brokers_of(read, sink), name, at, f"topic {name}")
    elif isinstance(sink, FilesSink | SparkSink):
        if (folder := sink.folder(context)) is not None:
            yield WrittenName("folder", frozenset(), folder.rstrip("/"), folder_at(sink), f"folder {folder}")
    elif isinstance(sink, DatabaseSink):
        table = context.resolve(sink.table)
        yield WrittenName("table", server_of(context, sink.url), table, ("sink", "table"), f"table {table}")
    dead = model.errors.dead_letter_topic
    if dead is not None:
        yield WrittenName(
            "topic",
            brokers_of(read, model.dead_letter_part),
            dead,
            ("errors", "deadLetterTopic"),
            f"topic {dead} of dead letters",
        )


def folder_at(sink: FilesSink | SparkSink) -> Path:
    """Return the place of the folder in a pipeline."""
    return ("sink", "path" if isinstance(sink, FilesSink) else "options")


def find_shared_folders(reads: Iterable[PipelineDefinition]) -> Iterator[Mistake]:
    """Report each folder of files with a second writing pipeline: Spark's log in a folder has the batches of one query only."""
    seen: dict[str, PipelineDefinition] = {}
    for read in reads:
        sink: Any = read.model.sink
        folder = sink.folder(context_of(read)) if isinstance(sink, FilesSink | SparkSink) else None
        if folder is None:
            continue
        other = seen.setdefault(folder.rstrip("/"), read)
        if other is not read:
            sentence = f"pipeline {other.name!r} also writes files to folder {folder}, and Spark would skip batches of one of them; choose another folder"
            yield Mistake(read.place(*folder_at(sink)), sentence)


def topics_of_sink(read: PipelineDefinition) -> list[str]:
    """Return the topics that rows are written to, as far as they are known from the file."""
    model = read.model
    sink: Any = model.sink
    if sink.topic is not None and not model.is_routed:
        return [sink.topic]
    names = model.source.names() if isinstance(model.source, TopicBase) else [sink.topic] if sink.topic else []
    for step in model.transforms:
        if isinstance(step, Router):
            if not isinstance(step, RegexRouter) or step.predicate is not None:
                return []
            names = [rename_topic(step, name) for name in names]
    return names


def rename_topic(router: RegexRouter, name: str) -> str:
    """Return the topic to which a router sends the records of `name`; unchanged if its expression does not match."""
    try:
        found = java_pattern("regex", router.regex).fullmatch(name)
        return name if found is None else found.expand(router.replacement.replace("\\", "\\\\").replace("$", "\\"))
    except (ConfigError, ValueError, IndexError):
        return ""


def find_read_names(read: PipelineDefinition) -> Iterator[ReadNames]:
    context = context_of(read)
    for source in (read.model.source, *read.model.inputs.values()):
        if isinstance(source, TopicBase):
            if source.topic_pattern is not None:
                yield ReadNames(
                    "topic", brokers_of(read, source), compile_matcher(source.topic_pattern), source.topic_pattern
                )
            else:
                yield ReadNames(
                    "topic", brokers_of(read, source), set(map(context.resolve, source.names())).__contains__, None
                )
        elif isinstance(source, FilesSource):
            yield ReadNames("folder", frozenset(), partial(has_folder, context.path(source.path).rstrip("/")), None)
        elif isinstance(source, DatabaseSource | PostgresCdcSource):
            yield ReadNames("table", server_of(context, source.url), context.resolve(source.table).__eq__, None)


def has_folder(path: str, folder: str) -> bool:
    """Return True if a path, which may be a pattern of folders or of files, names the folder or files in it."""
    parts, wanted = folder.split("/"), path.split("/")
    is_near = len(wanted) in (len(parts), len(parts) + 1)
    return is_near and all(map(fnmatchcase, parts, wanted))


def compile_matcher(pattern: str) -> Callable[[str], bool]:
    try:
        expression = java_pattern("topicPattern", pattern)
    except ConfigError:
        return lambda name: False  # reported by the check of the source
    return lambda name: expression.fullmatch(name) is not None


def context_of(read: PipelineDefinition) -> PipelineContext:
    secrets = read.secrets
    return PipelineContext(read.name, read.folder, resolve=secrets.resolve, resolve_address=secrets.resolve_address)


def brokers_of(read: PipelineDefinition, part: TopicBase | TopicSinkBase | None) -> frozenset[str]:
    """Return the addresses by which the brokers of a part are found."""
    kafka = {**read.settings.kafka, **({} if part is None else part.kafka)}
    own = None if part is None else part.bootstrap_servers
    given = own or read.settings.bootstrap_servers or text_of(kafka.get(SERVERS, ""))
    return frozenset(one.strip().lower() for one in read.secrets.resolve(given).split(",") if one.strip())


def server_of(context: PipelineContext, url: str) -> frozenset[str]:
    """Return the database of an address, without user and password."""
    return frozenset([without_secrets(context.resolve_address(url))])
