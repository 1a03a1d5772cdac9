"""Names of datasets by OpenLineage's naming rules. Pure."""

from __future__ import annotations

from typing import NamedTuple

from ottla.pipelines.manager.build import Built
from ottla.pipelines.sinks import Sink
from ottla.pipelines.sinks.topic import TopicSinkBase
from ottla.pipelines.sources import Source
from ottla.pipelines.sources.topic import TopicBase

SERVERS = "bootstrap.servers"


class DatasetName(NamedTuple):
    """The namespace is the place, such as `kafka://127.0.0.1:9092`; the name is unique in it."""

    namespace: str
    name: str


def names_of(part: Source | Sink, built: Built) -> list[DatasetName]:
    """Return the datasets of a source or sink: one for each topic, else one. Secrets are hidden."""
    context, hide = built.context, built.read.secrets.hide
    if isinstance(part, TopicBase | TopicSinkBase):
        first_server = context.any_client("admin", part)[SERVERS].split(",")[0].strip()
        topics = [part.topic] if isinstance(part.topic, str) else part.topic
        return [DatasetName(f"kafka://{hide(first_server)}", hide(topic)) for topic in topics or [part.describe()]]
    path, table = getattr(part, "path", None), getattr(part, "table", None)
    if isinstance(path, str):
        place = context.path(path)
        scheme, separator, rest = place.partition("://")
        host, _, key = rest.partition("/")
        found = DatasetName(f"{scheme}://{host}", key) if separator else DatasetName("file", place)
        return [DatasetName(hide(found.namespace), hide(found.name))]
    name = hide(table) if isinstance(table, str) else part.describe()
    return [DatasetName(part.type, name)]
