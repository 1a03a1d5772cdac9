"""Dead letters: records that could not be processed, in their original bytes, with the error headers of Kafka Connect (KIP-298)."""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from enum import Enum
from typing import Any

from ottla.client.consumer.record import ConsumerRecord
from ottla.client.process.outgoing import Outgoing
from ottla.errors import SerializationError
from ottla.model import Header

PREFIX = "__connect.errors."
MESSAGE_CHARACTERS = 2_000
"""The maximum length of the error message in a header."""
TRACE_CHARACTERS = 10_000
"""The maximum length of the stack trace in a header; its end is kept."""


class Stage(Enum):
    """The stage that failed, in Connect's terms."""

    TRANSFORMATION = "TRANSFORMATION"
    VALUE_CONVERTER = "VALUE_CONVERTER"
    """The key or value could not be deserialized."""


def dead_letter(record: ConsumerRecord, error: Exception, topic: str, name: str) -> Outgoing:
    """Return a record with the original bytes, its own headers, and then the headers that describe the error."""
    headers = [*record.headers, *encode_texts(describe_failure(record, error, name, "ottla.process"))]
    return Outgoing(record.raw_value, record.raw_key, topic, timestamp=record.timestamp, headers=headers)


def describe_failure(record: Any, error: BaseException, connector: str, class_name: str) -> dict[str, str]:
    """Return the texts of Connect's headers by their names."""
    stage = Stage.VALUE_CONVERTER if isinstance(error, SerializationError) else Stage.TRANSFORMATION
    kind = type(error)
    fields = {
        "topic": record.topic,
        "partition": str(record.partition),
        "offset": str(record.offset),
        "connector.name": connector,
        "task.id": "0",
        "stage": stage.value,
        "class.name": class_name,
        "exception.class.name": f"{kind.__module__}.{kind.__qualname__}",
        "exception.message": str(error)[:MESSAGE_CHARACTERS],
        "exception.stacktrace": "".join(traceback.format_exception(error))[-TRACE_CHARACTERS:],
    }
    return {PREFIX + name: text for name, text in fields.items()}


def encode_texts(texts: Mapping[str, str]) -> list[Header]:
    """Return texts as headers. The message of an exception may have surrogates, which UTF-8 does not have."""
    return [(name, text.encode("utf-8", "backslashreplace")) for name, text in texts.items()]
