"""Schemas of Avro and of Protocol Buffers, read when the pipeline file is: a mistake in them need not wait for Spark."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ottla.errors import ConfigError
from ottla.pipelines.surroundings import Surroundings
from ottla.spark.columns.value_formats import as_text, is_avro, no_text

if TYPE_CHECKING:
    from collections.abc import Callable

LONGEST = 60


def mistaken(given: Mapping[str, str], around: Surroundings) -> Iterator[tuple[str, str]]:
    """Of the options of a source: the key of a schema, and what is wrong with it."""
    for part in ("key", "value"):
        check = CHECKS.get(given.get(f"{part}Format", ""))
        told = check(part, given, around) if check is not None else None
        if told is not None:
            key, error = told
            yield key, f"{key} = {shortened(given[key])!r}: {error}"


def avro_mistaken(part: str, given: Mapping[str, str], around: Surroundings) -> tuple[str, ConfigError] | None:
    from ottla.spark.formats.avro import Avro

    key = f"{part}Schema"
    try:
        text = around.resolve(given[key])
        Avro(text if is_avro(text) else as_text(content(given[key], around)))
    except UnicodeDecodeError as error:
        return key, ConfigError(no_text(error))
    except ConfigError as error:
        return key, error
    return None


def protobuf_mistaken(part: str, given: Mapping[str, str], around: Surroundings) -> tuple[str, ConfigError] | None:
    from ottla.spark.formats.protobuf import DescriptorsError, Protobuf

    file, message = f"{part}Descriptor", f"{part}Message"
    try:
        descriptors = content(given[file], around)
    except ConfigError as error:
        return file, error
    try:
        Protobuf(descriptors, around.resolve(given[message]))
    except ConfigError as error:
        return (file if isinstance(error, DescriptorsError) else message), error
    return None


CHECKS: Mapping[str, Callable[[str, Mapping[str, str], Surroundings], tuple[str, ConfigError] | None]] = {
    "avro": avro_mistaken,
    "protobuf": protobuf_mistaken,
}


def content(text: str, around: Surroundings) -> bytes:
    """What is in the file; it is not said where a path leads that has a secret in it."""
    try:
        return Path(around.path(text)).read_bytes()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        where = f"relative paths begin in {around.folder.absolute()}"
        raise ConfigError(f"cannot be read: {reason[:1].lower()}{reason[1:]}; {where}") from None


def shortened(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
