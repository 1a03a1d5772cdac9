"""The schemas of registered values: requested before a pipeline is built, and compared with those of its last run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from ottla.errors import OttlaError
from ottla.pipelines.file.reading import PipelineDefinition, checkpoints_of
from ottla.pipelines.manager.build import SourceSchemas, at_place, context_of, sources_of
from ottla.pipelines.manager.schema_changes import find_schema_changes
from ottla.pipelines.manager.state_directory import StateDirectory
from ottla.pipelines.pipeline_context import PipelineContext
from ottla.pipelines.place import Mistake, PipelineFileError
from ottla.pipelines.sinks.topic import TopicSinkBase
from ottla.pipelines.sources.topic import TopicBase
from ottla.spark.options import registry_settings

RETRIES = "schemaRegistryMaxRetries"


class SchemaReport(NamedTuple):
    """What the registries say about pipelines."""

    wrong: list[Mistake]
    """Missing subjects, and schemas that cannot be used."""
    unchecked: list[Mistake]
    """Registries that do not answer."""
    changes: list[Mistake]
    """Schemas that have changed since a pipeline last ran."""


def ensure_schemas(reads: Sequence[PipelineDefinition]) -> None:
    """Raise PipelineFileError if a registry does not answer, or a subject is missing or cannot be used."""
    report = check_schemas(reads)
    if mistakes := [*report.wrong, *report.unchecked]:
        raise PipelineFileError(mistakes)


def check_schemas(reads: Sequence[PipelineDefinition]) -> SchemaReport:
    """Request the schemas of all sources and sinks, without Spark, brokers or a change in a registry."""
    report = SchemaReport([], [], [])
    silent: list[Mapping[str, str]] = []
    pending = dict.fromkeys(written_subjects(reads))
    for read in reads:
        if not has_registered_parts(read):
            continue
        context = context_of(read)
        context = replace(context, pending=pending, registry={RETRIES: "0", **context.registry})
        for path, part in (*sources_of(read), (("sink",), read.model.sink)):
            if context.registry in silent or not is_registered(part):
                continue
            try:
                with at_place(read, *path):
                    schemas = schemas_of(part, context)
            except PipelineFileError as error:
                is_silent = is_without_answer(error.__cause__)
                (report.unchecked if is_silent else report.wrong).extend(error.mistakes)
                silent += [context.registry] if is_silent else []
                continue
            changes = changes_of(read, {".".join(path): schemas})
            report.changes.extend(Mistake(read.place(*path), change) for change in changes)
    return report


def schemas_of(part: object, context: PipelineContext) -> Mapping[str, str]:
    """Return the schemas of a source; those of a topic that only the brokers know, and of a sink, are empty."""
    if isinstance(part, TopicSinkBase):
        part.check_registered(context)
    elif isinstance(part, TopicBase) and not part.needs_brokers_for_schemas():
        return part.find_schemas(context)
    else:
        from ottla.spark.formats.registered import open_registry

        open_registry(registry_settings(context.registry))[0].get_schema_types()
    return {}


def changes_of(read: PipelineDefinition, schemas: SourceSchemas) -> Iterator[str]:
    """Yield a sentence for each schema that has changed since the last run."""
    home = StateDirectory(checkpoints_of(read), read.name)
    for source, now in schemas.items():
        for sentence in find_schema_changes(home.last_schemas(source), now):
            where = "" if source == "source" else f"{source.replace('.', ' ')}: "
            yield f"{where}{sentence}"


def with_changes(mistakes: Iterable[Mistake], changes: Sequence[str]) -> list[Mistake]:
    """Return mistakes with the changes of schemas, which may be their cause."""
    return [one._replace(sentence="; ".join([one.sentence, *changes])) for one in mistakes]


def written_subjects(reads: Iterable[PipelineDefinition]) -> Iterator[str]:
    """Yield the subjects in which pipelines will register schemas."""
    for read in reads:
        sink = read.model.sink
        if isinstance(sink, TopicSinkBase):
            yield from sink.subjects(context_of(read))


def has_registered_parts(read: PipelineDefinition) -> bool:
    """Return True if a source or the sink has registered values."""
    parts = [part for _, part in sources_of(read)]
    return read.settings.schema_registry_url is not None and any(map(is_registered, [*parts, read.model.sink]))


def is_registered(part: object) -> bool:
    """Return True if a source or sink has registered values, in a file with a registry."""
    if isinstance(part, TopicBase):
        return bool(part.registered_parts())
    return isinstance(part, TopicSinkBase) and bool(part.registered_parts())


def is_without_answer(error: BaseException | None) -> bool:
    """Return True if no registry answered."""
    return isinstance(error, OttlaError) and getattr(error, "http_status_code", None) == -1
