"""Checks Avro and Protocol Buffers schemas when the pipeline file is read, before Spark starts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ottla.errors import ConfigError
from ottla.pipelines.pipeline_context import PipelineContext
from ottla.spark.columns.value_formats import as_text, is_avro, not_text_error

if TYPE_CHECKING:
    from collections.abc import Callable

LONGEST = 60


def find_mistakes(given: Mapping[str, str], context: PipelineContext) -> Iterator[tuple[str, str]]:
    """Yield the option with an invalid schema, and the error text."""
    for part in ("key", "value"):
        check = CHECKS.get(given.get(f"{part}Format", ""))
        problem = check(part, given, context) if check is not None else None
        if problem is not None:
            key, error = problem
            yield key, f"{key} = {shortened(given[key])!r}: {error}"


def find_avro_mistakes(part: str, given: Mapping[str, str], context: PipelineContext) -> tuple[str, ConfigError] | None:
    from ottla.spark.formats.avro import Avro

    key = f"{part}Schema"
    if key not in given:  # the schema of a registry
        return None
    try:
        Avro(read_schema(given[key], context))
    except UnicodeDecodeError as error:
        return key, ConfigError(not_text_error(error))
    except ConfigError as error:
        return key, error
    return None


def read_schema(given: str, context: PipelineContext) -> str:
    """Return an Avro schema that is given as JSON or as a file of it."""
    text = context.resolve(given)
    return text if is_avro(text) else as_text(read_content(given, context))


def find_protobuf_mistakes(
    part: str, given: Mapping[str, str], context: PipelineContext
) -> tuple[str, ConfigError] | None:
    from ottla.spark.formats.protobuf import DescriptorsError, Protobuf

    file, message = f"{part}Descriptor", f"{part}Message"
    if file not in given:  # the schema of a registry
        return None
    try:
        descriptors = read_content(given[file], context)
    except ConfigError as error:
        return file, error
    try:
        Protobuf(descriptors, context.resolve(given[message]))
    except ConfigError as error:
        return (file if isinstance(error, DescriptorsError) else message), error
    return None


CHECKS: Mapping[str, Callable[[str, Mapping[str, str], PipelineContext], tuple[str, ConfigError] | None]] = {
    "avro": find_avro_mistakes,
    "protobuf": find_protobuf_mistakes,
}


def read_written_schema(form: str, given: str, context: PipelineContext) -> str:
    """Return a schema with which values are written, given as text or as a file of it."""
    if form == "avro":
        return read_schema(given, context)
    text = context.resolve(given)
    return text if "{" in text else as_text(read_content(given, context))


def read_content(text: str, context: PipelineContext) -> bytes:
    """Return the content of a file; the error text does not have the resolved path, which may contain a secret."""
    try:
        return Path(context.path(text)).read_bytes()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        where = f"relative paths start in {context.folder.absolute()}"
        raise ConfigError(f"cannot be read: {reason[:1].lower()}{reason[1:]}; {where}") from None


def shortened(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
