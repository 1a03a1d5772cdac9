"""Interprets `keyFormat`, `valueFormat` and their schemas: the type of a column, and its decoder for tasks.

Runs once, on the driver; files and schemas are read here and sent to the tasks. A format is imported when it is used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from zoneinfo import ZoneInfo

from pyspark.errors import PySparkException
from pyspark.sql.pandas.types import from_arrow_type, to_arrow_schema, to_arrow_type
from pyspark.sql.types import BinaryType, DataType, StringType, StructType

from ottla.errors import ConfigError
from ottla.spark.columns.ddl import parse_schema
from ottla.spark.columns.row_decoder import Decoding
from ottla.spark.columns.schema import spark_schema
from ottla.spark.formats.format import Format
from ottla.spark.formats.text import Raw, Text
from ottla.spark.options import SourceOptions, is_registered, spelling

if TYPE_CHECKING:
    from ottla.spark.formats.protobuf import Protobuf
    from ottla.spark.formats.registered import RegisteredValues

Sample = Callable[[], Iterable[bytes | None]]
"""Returns sample keys or values of the topics, to infer their schema."""
INFER = "infer"
NEEDED: Mapping[str, Mapping[str, str]] = {
    "json": {"schema": f"for example `id bigint, name string`, or {INFER}"},
    "avro": {"schema": "an Avro schema as JSON, or a file of it"},
    "protobuf": {
        "descriptor": "the file that `protoc --include_imports -o FILE` writes",
        "message": "the full name of the message",
    },
}
"""The options that a format requires."""


@dataclass(frozen=True)
class Coded:
    """The key or the value with its options."""

    name: str
    options: SourceOptions
    reader: str | None = None
    """The reader's schema of registered values."""

    def option(self, field: str) -> Any:
        return getattr(self.options, f"{self.name}_{field}")

    def spelled(self, field: str) -> str:
        return spelling(f"{self.name}_{field}")

    def required(self, field: str) -> str:
        text, form = self.option(field), self.option("format")
        if not text:
            needs = f"{self.spelled('format')} = {form} needs the option {self.spelled(field)}"
            raise ConfigError(f"option {needs}, {NEEDED[form][field]}")
        return cast(str, text)

    def file(self, field: str) -> bytes:
        """Return the content of the file of an option."""
        name = self.required(field)
        try:
            return Path(name).read_bytes()
        except OSError as error:
            raise ConfigError(f"option {self.spelled(field)} = {name!r} cannot be read: {error.strerror}") from None


def raw_type(_: Coded, __: Sample) -> DataType:
    return BinaryType()


def string_type(_: Coded, __: Sample) -> DataType:
    return StringType()


def registered(coded: Coded) -> Callable[[], RegisteredValues]:
    """Return the decoder of registered JSON or Protobuf."""
    from ottla.spark.formats.registered import RegisteredValues

    assert coded.reader is not None
    return partial(RegisteredValues, coded.options.registry, coded.option("format"), coded.reader)


def json_type(coded: Coded, sample: Sample) -> DataType:
    """Return the struct of the given, registered or inferred schema."""
    if coded.reader is not None:
        return from_arrow_type(registered(coded)().kind)
    text = coded.required("schema")
    if text.strip().lower() != INFER:
        return checked_type(coded, parse_schema(coded.spelled("schema"), text))
    from ottla.spark.formats.json_inference import infer_type

    found = infer_type(sample())
    if found is None:
        topics = "the topics have no JSON object to infer columns from"
        raise ConfigError(f"option {coded.spelled('schema')} = {INFER}: {topics}; give the schema instead")
    return from_arrow_type(found)


def checked_type(coded: Coded, kind: StructType) -> StructType:
    """Return the type; ConfigError if JSON cannot be decoded to it."""
    from ottla.spark.formats.json_values import reader_of

    try:
        reader_of(to_arrow_type(kind, timezone="UTC"))
    except (TypeError, PySparkException) as error:
        raise ConfigError(f"option {coded.spelled('schema')}: {error}") from None
    return kind


def avro_type(coded: Coded, _: Sample) -> DataType:
    from ottla.spark.formats.avro import Avro

    return from_arrow_type(Avro(coded.reader or avro_schema(coded)).kind)


def avro_schema(coded: Coded) -> str:
    """Return the schema as JSON, from the option or from its file."""
    text = coded.required("schema")
    if is_avro(text):
        return text
    try:
        return as_text(coded.file("schema"))
    except UnicodeDecodeError as error:
        raise ConfigError(f"option {coded.spelled('schema')} = {text!r}: {not_text_error(error)}") from None


def as_text(data: bytes) -> str:
    """Return the text of a schema file; UnicodeDecodeError if it is not UTF-8."""
    return data.decode("utf-8-sig")


def not_text_error(error: UnicodeDecodeError) -> str:
    """Return the reason why such a file is not a schema."""
    where = f"byte {error.start + 1} of the file, 0x{error.object[error.start]:02x}, is not UTF-8"
    return f"it is not an Avro schema: {where}; write the schema as JSON"


def is_avro(text: str) -> bool:
    """Return True if the text is a schema, and not the name of a file."""
    return text.lstrip()[:1] in ("{", "[", '"')


def protobuf_type(coded: Coded, _: Sample) -> DataType:
    return from_arrow_type(protobuf_format(coded)().kind)


def protobuf_format(coded: Coded) -> Callable[[], Protobuf | RegisteredValues]:
    return protobuf(coded) if coded.reader is None else registered(coded)


def protobuf(coded: Coded) -> Callable[[], Protobuf]:
    from ottla.spark.formats.protobuf import Protobuf

    descriptors = coded.file("descriptor")
    return partial(Protobuf, descriptors, coded.required("message"))


def json_format(coded: Coded, kind: DataType) -> Callable[[], Format]:
    if coded.reader is not None:
        return registered(coded)
    from ottla.spark.formats.json_format import Json

    zone = coded.options.time_zone
    try:
        ZoneInfo(zone)
    except (OSError, ValueError, KeyError):
        raise ConfigError(f"option timeZone = {zone!r} is not a time zone; write for example Europe/Paris") from None
    return partial(Json, to_arrow_type(kind, timezone="UTC"), zone)


def avro_format(coded: Coded, _: DataType) -> Callable[[], Format]:
    if coded.reader is not None:
        from ottla.spark.formats.registered import RegisteredAvro

        return partial(RegisteredAvro, coded.options.registry, coded.reader)
    from ottla.spark.formats.avro import Avro

    return partial(Avro, avro_schema(coded))


TYPES: dict[str, Callable[[Coded, Sample], DataType]] = {
    "raw": raw_type,
    "string": string_type,
    "json": json_type,
    "avro": avro_type,
    "protobuf": protobuf_type,
}
FORMATS: dict[str, Callable[[Coded, DataType], Callable[[], Format]]] = {
    "raw": lambda _, __: Raw,
    "string": lambda _, __: Text,
    "json": json_format,
    "avro": avro_format,
    "protobuf": lambda coded, _: protobuf_format(coded),
}
SURE = {"raw", "string"}
"""Formats without errors."""


def columns_of(
    options: SourceOptions, sample: Callable[[str], Iterable[bytes | None]], readers: Mapping[str, str]
) -> StructType:
    """Return the columns of a query; `sample` returns keys or values to infer a schema from.

    `readers` has the reader's schemas of registered keys and values.
    """
    kinds = {
        name: TYPES[coded.option("format")](coded, partial(sample, name))
        for name, coded in ((name, Coded(name, options, readers.get(name))) for name in ("key", "value"))
    }
    return spark_schema(
        options.include_headers, **kinds, with_errors=has_error_columns(options), with_raw_key=options.keep_raw
    )


def has_error_columns(options: SourceOptions) -> bool:
    """Return True if rows can have errors, and are kept then."""
    return options.mode == "PERMISSIVE" and not {options.key_format, options.value_format} <= SURE


def decoding_of(options: SourceOptions, schema: StructType, readers: Mapping[str, str]) -> Decoding:
    """Return the settings with which tasks decode rows to the columns of `schema`."""
    coded = {name: Coded(name, options, readers.get(name)) for name in ("key", "value")}
    formats = {name: FORMATS[one.option("format")](one, schema[name].dataType) for name, one in coded.items()}
    return Decoding(
        to_arrow_schema(schema, timezone="UTC"),
        formats["key"],
        formats["value"],
        options.mode,
        options.keep_raw,
        options.reject_empty,
        frozenset(name for name in coded if is_registered(options, name)),
    )
