"""The request of a sensor to its trigger as JSON, and a record as JSON. Pure."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from ottla.client.consumer.record import ConsumerRecord
from ottla.errors import ConfigError

ENCODINGS = ("utf-8", "base64")
STARTS = ("earliest", "latest")


class TopicRequest(NamedTuple):
    """The topics and how to read them. Made by `check_request`."""

    topics: list[str]
    config: dict[str, Any]
    """Settings of a Consumer, by their names with dots."""
    start: str
    max_records: int
    encoding: str


def check_request(
    topics: str | Iterable[str], config: Mapping[str, Any], start: str, max_records: int, encoding: str
) -> TopicRequest:
    """Return the request. Raises ConfigError for a wrong value."""
    names = [topics] if isinstance(topics, str) else list(topics)
    if not names:
        raise ConfigError("topics is empty: name a topic, such as 'orders'")
    for what, value, allowed in (("start", start, STARTS), ("encoding", encoding, ENCODINGS)):
        if value not in allowed:
            raise ConfigError(f"invalid value {value!r} for {what}: expected {' or '.join(allowed)}")
    if not 1 <= max_records <= 10_000:
        raise ConfigError(f"invalid value {max_records} for max_records: expected a number from 1 to 10000")
    settings = {name.replace("_", "."): value for name, value in config.items()}
    try:
        json.dumps(settings)
    except TypeError as error:
        raise ConfigError(
            f"config has a value that Airflow cannot store: {error}; use text, numbers and lists"
        ) from None
    return TopicRequest(names, settings, start, max_records, encoding)


def record_to_json(record: ConsumerRecord, encoding: str) -> dict[str, Any]:
    """Return the record as values of JSON.

    With the encoding `base64`, keys and values keep all their bytes; with `utf-8`, bytes that are not UTF-8 become U+FFFD.
    """

    def text(value: bytes | None) -> str | None:
        if value is None:
            return None
        return base64.b64encode(value).decode() if encoding == "base64" else value.decode(errors="replace")

    return {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        "key": text(record.key),
        "value": text(record.value),
        "headers": [[name, text(value)] for name, value in record.headers],
    }
