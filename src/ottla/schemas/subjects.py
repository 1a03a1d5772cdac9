"""The subject under which a schema is registered. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ottla.errors import ConfigError, SerializationError
from ottla.schemas.context import SerializationContext
from ottla.schemas.values import SchemaReference

Strategy = Callable[[Any, Any], str | None]
"""Returns the subject for a context and the name of a record type."""


def topic_subject_name_strategy(ctx: SerializationContext | None, record_name: str | None = None) -> str | None:
    """Return TOPIC-key or TOPIC-value."""
    if ctx is None or ctx.topic is None:
        raise ValueError("the topic strategy needs a topic; pass SerializationContext(topic, MessageField.VALUE)")
    return f"{ctx.topic}-{ctx.field}"


def topic_record_subject_name_strategy(ctx: SerializationContext | None, record_name: str | None) -> str | None:
    """Return TOPIC-RECORD, with the full name of the record type."""
    if ctx is None or ctx.topic is None:
        raise ValueError(
            "the topic-record strategy needs a topic; pass SerializationContext(topic, MessageField.VALUE)"
        )
    return None if record_name is None else f"{ctx.topic}-{record_name}"


def record_subject_name_strategy(ctx: SerializationContext | None, record_name: str | None) -> str | None:
    """Return the full name of the record type."""
    return record_name


def reference_subject_name_strategy(ctx: SerializationContext | None, schema_ref: SchemaReference) -> str | None:
    """Return the name of a reference, which is the path of an imported Protobuf file."""
    return schema_ref.name


BY_TYPE: dict[str, Strategy] = {
    "TOPIC": topic_subject_name_strategy,
    "RECORD": record_subject_name_strategy,
    "TOPIC_RECORD": topic_record_subject_name_strategy,
}
"""The values of `subject.name.strategy.type`."""
FIXED = frozenset(BY_TYPE.values())
"""The strategies whose subject depends only on topic, field and record name."""


def choose_strategy(strategy: Any, kind: Any) -> Strategy:
    """Return the strategy of `subject.name.strategy`, else of `subject.name.strategy.type`, else the topic strategy."""
    if strategy is not None:
        if not callable(strategy):
            raise ConfigError(f"subject.name.strategy = {strategy!r}: must be a function of (context, record name)")
        chosen: Strategy = strategy
        return chosen
    if kind is None:
        return topic_subject_name_strategy
    name = str(getattr(kind, "value", kind)).upper()
    if name not in BY_TYPE:
        raise ConfigError(f"subject.name.strategy.type = {kind!r}: must be one of {', '.join(BY_TYPE)}")
    return BY_TYPE[name]


def required_subject(subject: str | None, ctx: SerializationContext | None) -> str:
    """Return the subject; SerializationError if the strategy did not return one."""
    if subject is None:
        where = "" if ctx is None else f" for the {ctx.field} of {ctx.topic!r}"
        raise SerializationError(
            f"the subject name strategy returned no subject{where}: its schema has no record name; use the topic strategy"
        )
    return subject
