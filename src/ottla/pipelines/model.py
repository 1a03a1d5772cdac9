"""What all models of a pipeline file have in common: keys in Kafka's spelling, no others, values of the type that is said.

A field `value_format` is the key `valueFormat`; where Kafka has dots, the field names its key. A text under a field is its
description in the JSON Schema.
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
"""What an option of Spark's or a setting of a client may be in the file; both get text."""


def split(value: Any) -> Any:
    """Return names that are text with commas between, as Connect has them, as a list; what is a list stays one."""
    return [name.strip() for name in value.split(",") if name.strip()] if isinstance(value, str) else value


NameList = Annotated[list[str], BeforeValidator(split, json_schema_input_type=list[str] | str)]
"""Names as a list, or as text."""


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
    """A model that takes the options of a table besides its own keys; those it gives itself are left out."""
    fields: dict[str, Any] = {}
    for option in options_of(table):
        if option.field in without or option.field in base.model_fields:
            continue
        described: Any = Field(default=None, alias=spelling(option.field))
        fields[option.field] = (checked(option.type, spelling(option.field)) | None, described)
    made = create_model(name, __base__=base, __module__=base.__module__, __doc__=base.__doc__, **fields)
    TABLES[made] = table
    return made


TABLES: dict[type[BaseModel], type[Any]] = {}
"""Of models that take the options of a table, that table."""


class WithTexts(GenerateJsonSchema):
    """JSON Schema that has the text under each field as its description; texts are read from the source when they are asked for."""

    def model_schema(self, schema: ModelSchema) -> JsonSchemaValue:
        found = super().model_schema(schema)
        texts = texts_of(schema["cls"])
        for name, field in schema["cls"].model_fields.items():
            one = found.get("properties", {}).get(field.alias or name)
            if one is not None and name in texts:
                one.setdefault("description", texts[name])
        return found


def texts_of(model: type[BaseModel]) -> dict[str, str]:
    """By its fields."""
    tables = [TABLES[part] for part in model.__mro__ if part in TABLES]
    of_options = {option.field: option.doc for table in tables for option in options_of(table) if option.doc}
    return {**of_options, **prose(model)}


def checked(hint: Any, name: str) -> Any:
    """A type whose bounds pydantic checks by the table's own rule."""
    bounds = list(bounds_in(hint))
    rule = AfterValidator(lambda value: value if value is None else within(bounds, name, value))
    return Annotated[hint, rule] if bounds else hint


def bounds_in(hint: Any) -> Iterator[Between]:
    """The bounds of a type, or of one of those that it may be."""
    yield from (rule for rule in getattr(hint, "__metadata__", ()) if isinstance(rule, Between))
    for part in typing.get_args(hint):
        yield from bounds_in(part)


def within(bounds: list[Between], name: str, value: Any) -> Any:
    """The value, if no bound says otherwise."""
    try:
        for bound in bounds:
            bound.check(name, value)
    except ConfigError as error:
        raise ValueError(str(error)) from None
    return value
