"""One of several models, chosen by the content of a value.

pydantic puts the name of the choice into the location of an error; it is written so that it cannot be a key of the
file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any

from pydantic import Discriminator, Tag

from ottla.pipelines.model import Model
from ottla.pipelines.transforms import CONNECT
from ottla.pipelines.transforms.connect.connect_transform import KEY, PACKAGE, VALUE, name_of
from ottla.pipelines.transforms.predicates import PACKAGE as PREDICATES_PACKAGE

TAGGED: Any = Annotated  # with types that are known at run time only
Chooser = Callable[[Any], str | None]


def choice_name(name: str) -> str:
    """Return the name of a choice in the location of an error."""
    return f"«{name}»"


def one_of(models: Mapping[str, type[Any]], chooser: Chooser) -> Any:
    """Return the type of a value that is one of these models."""
    union: Any = None
    for name, model in models.items():
        member = TAGGED[model, Tag(choice_name(name))]
        union = member if union is None else union | member
    return TAGGED[union, Discriminator(lambda value: choose_tag(chooser, value))]


def choose_tag(chooser: Chooser, value: Any) -> str | None:
    """Return the tag of the chosen model; a value may already be a model."""
    chosen = chooser(value.model_dump(by_alias=True, exclude_unset=True) if isinstance(value, Model) else value)
    return choice_name(chosen) if chosen is not None else None


def by_type(value: Any) -> str | None:
    """Return the value of `type`."""
    kind = value.get("type") if isinstance(value, dict) else None
    return kind if isinstance(kind, str) else None


def predicate_by_type(value: Any) -> str | None:
    """Return the value of `type` without the package of Kafka Connect."""
    kind = by_type(value)
    return kind.removeprefix(PREDICATES_PACKAGE) if kind is not None else None


def transform_by_key(value: Any) -> str | None:
    """Return `sql` or `function` if the value has this key, else its `type`."""
    if isinstance(value, dict):
        for key in ("sql", "function"):
            if key in value and "type" not in value:
                return key
    kind = by_type(value)
    if kind is None:
        return None
    short = kind.removeprefix(PACKAGE)
    known = CONNECT.get(name_of(kind))
    if known is not None and not known.has_parts and short.endswith((KEY, VALUE)):
        return short
    return name_of(kind)
