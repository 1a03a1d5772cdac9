"""What all models of a pipeline file have in common: keys in Kafka's spelling, no others, values of the type that is said.

A field `value_format` is the key `valueFormat`; where Kafka has dots, the field names its key. A text under a field is its
description in the JSON Schema.
"""

from __future__ import annotations

import typing
from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, create_model
from pydantic.alias_generators import to_camel

from ottla.config import Between, options_of
from ottla.errors import ConfigError
from ottla.spark.options import spelling

Scalar = str | bool | int | float
"""What an option of Spark's or a setting of a client may be in the file; both get text."""


class Model(BaseModel):
    """A part of a pipeline file."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        strict=True,
        alias_generator=to_camel,
        hide_input_in_errors=True,
        use_attribute_docstrings=True,
        protected_namespaces=(),
    )


def with_options(base: type[Model], table: type[Any], without: set[str], name: str) -> type[Any]:
    """A model that takes the options of a table besides its own keys; those it gives itself are left out."""
    fields: dict[str, Any] = {}
    for option in options_of(table):
        if option.field in without or option.field in base.model_fields:
            continue
        described: Any = Field(default=None, alias=spelling(option.field), description=option.doc or None)
        fields[option.field] = (checked(option.type, spelling(option.field)) | None, described)
    return create_model(name, __base__=base, __module__=base.__module__, __doc__=base.__doc__, **fields)


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
