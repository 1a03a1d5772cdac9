"""Dead letters: records that could not be processed, in their original bytes, with the error headers of Kafka Connect (KIP-298)."""

from __future__ import annotations

import traceback
from enum import Enum

from ottla.client.consumer.record import ConsumerRecord
from ottla.client.process.outgoing import Outgoing
from ottla.errors import SerializationError

PREFIX = "__connect.errors."


class Stage(Enum):
    """The stage that failed, in Connect's terms."""

    TRANSFORMATION = "TRANSFORMATION"
    VALUE_CONVERTER = "VALUE_CONVERTER"
    """The key or value could not be deserialized."""


def dead_letter(record: ConsumerRecord, error: Exception, topic: str, name: str) -> Outgoing:
    """Return a record with the original bytes, its own headers, and then the headers that describe the error."""
    stage = Stage.VALUE_CONVERTER if isinstance(error, SerializationError) else Stage.TRANSFORMATION
    kind = type(error)
    fields = {
        "topic": record.topic,
        "partition": str(record.partition),
        "offset": str(record.offset),
        "connector.name": name,
        "task.id": "0",
        "stage": stage.value,
        "class.name": "ottla.process",
        "exception.class.name": f"{kind.__module__}.{kind.__qualname__}",
        "exception.message": str(error),
        "exception.stacktrace": "".join(traceback.format_exception(error)),
    }
    headers = [*record.headers, *((PREFIX + key, text.encode()) for key, text in fields.items())]
    return Outgoing(record.raw_value, record.raw_key, topic, timestamp=record.timestamp, headers=headers)
