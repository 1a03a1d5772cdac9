"""The base of all models of a pipeline file: keys in Kafka's spelling, no unknown keys, values of the declared type.

A field `value_format` is the key `valueFormat`; where Kafka has dots, the field gives its key as alias. The docstring
under a field is its description in the JSON Schema.
"""

from __future__ import annotations

import typing
from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, create_model
from pydantic.alias_generators import to_camel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core.core_schema import ModelSchema

from ottla.config import Between, options_of, prose
from ottla.errors import ConfigError
from ottla.spark.options import spelling

Scalar = str | bool | int | float
"""The type of an option of Spark or a setting of a client in the file; both receive text."""


def split(value: Any) -> Any:
    """Return names as a list; a text is split at commas, as in Kafka Connect."""
    return [name.strip() for name in value.split(",") if name.strip()] if isinstance(value, str) else value


NameList = Annotated[list[str], BeforeValidator(split, json_schema_input_type=list[str] | str)]
"""Names as a list, or as a text with commas."""


class Model(BaseModel):
    """A part of a pipeline file."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        strict=True,
        alias_generator=to_camel,
        hide_input_in_errors=True,
        protected_namespaces=(),
    )


def with_options(base: type[Model], table: type[Any], without: set[str], name: str) -> type[Any]:
    """Return a model with the options of a table in addition to its own keys; options in `without` are left out."""
    fields: dict[str, Any] = {}
    for option in options_of(table):
        if option.field in without or option.field in base.model_fields:
            continue
        described: Any = Field(default=None, alias=spelling(option.field))
        fields[option.field] = (checked_type(option.type, spelling(option.field)) | None, described)
    made = create_model(name, __base__=base, __module__=base.__module__, __doc__=base.__doc__, **fields)
    TABLES[made] = table
    return made


TABLES: dict[type[BaseModel], type[Any]] = {}
"""The table of options of each model made by `with_options`."""


class WithTexts(GenerateJsonSchema):
    """JSON Schema with the docstring of each field as its description.

    Docstrings are read from the source code only when needed.
    """

    def model_schema(self, schema: ModelSchema) -> JsonSchemaValue:
        found = super().model_schema(schema)
        texts = texts_of(schema["cls"])
        for name, field in schema["cls"].model_fields.items():
            one = found.get("properties", {}).get(field.alias or name)
            if one is not None and name in texts:
                one.setdefault("description", texts[name])
        return found


def texts_of(model: type[BaseModel]) -> dict[str, str]:
    """Return the description of each field."""
    tables = [TABLES[part] for part in model.__mro__ if part in TABLES]
    of_options = {option.field: option.doc for table in tables for option in options_of(table) if option.doc}
    return {**of_options, **prose(model)}


def checked_type(hint: Any, name: str) -> Any:
    """Return a type with the bounds checked by the table's own rule."""
    bounds = list(bounds_in(hint))
    rule = AfterValidator(lambda value: value if value is None else checked_bounds(bounds, name, value))
    return Annotated[hint, rule] if bounds else hint


def bounds_in(hint: Any) -> Iterator[Between]:
    """Yield the bounds of a type, or of the members of a union."""
    yield from (rule for rule in getattr(hint, "__metadata__", ()) if isinstance(rule, Between))
    for part in typing.get_args(hint):
        yield from bounds_in(part)


def checked_bounds(bounds: list[Between], name: str, value: Any) -> Any:
    """Return the value; ValueError if it is out of bounds."""
    try:
        for bound in bounds:
            bound.check(name, value)
    except ConfigError as error:
        raise ValueError(str(error)) from None
    return value
