"""Whether a pipeline may read what another writes. Pure, and careful: what cannot be told is a yes."""

from __future__ import annotations

from ottla.pipelines.file.reading import Read
from ottla.pipelines.sinks.topic import TopicSinkBase
from ottla.pipelines.sources import Source
from ottla.pipelines.sources.topic import TopicBase

RATE = "rate"


def needs(reader: Read, writer: Read) -> bool:
    """Whether the one is to wait for the end of the other, where both run once."""
    return any(feeds(writer, source) for source in (reader.model.source, *reader.model.inputs.values()))


def feeds(writer: Read, source: Source) -> bool:
    """Whether what it writes may be read there."""
    sink = writer.model.sink
    if source.type == RATE:
        return False
    if not isinstance(source, TopicBase):
        return not isinstance(sink, TopicSinkBase)
    if not isinstance(sink, TopicSinkBase):
        return False
    return source.topic is None or writer.model.routed or sink.topic is None or sink.topic in source.names()
