"""Dead letters of a worker: records that have failed for the last time, unchanged, with headers about the failure. Pure.

The origin and the error have the headers of Kafka Connect (KIP-298), as those of `ottla.process`. Connect has none for the
number of calls, the group and the original timestamp: these are ours. The dead letter itself has a new timestamp, because
the broker would soon delete one with the timestamp of an old record (`retention.ms`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from ottla.client.process.dead_letters import PREFIX as CONNECT
from ottla.client.process.dead_letters import describe_failure, encode_texts
from ottla.model import Header

OURS = "__ottla.errors."
SHARE_GROUP = "__dlq.errors."
"""The headers of a broker that gives up a record of a share group (KIP-1191)."""
PREFIXES = (CONNECT, OURS, SHARE_GROUP)


class DeadLetter(msgspec.Struct, frozen=True):
    """The facts in the headers of a dead letter; None if a header is missing."""

    topic: str | None
    partition: int | None
    offset: int | None
    timestamp: int | None
    group: str | None
    attempts: int | None
    error: str | None
    """The class of the exception."""
    message: str | None
    headers: tuple[Header, ...]
    """The headers of the original record."""


def failure_headers(record: Any, error: BaseException, attempts: int, group: str) -> list[Header]:
    """Return the headers of a dead letter: those of the record, then those about the failure."""
    ours = {"group": group, "attempts": str(attempts), "timestamp": str(record.timestamp)}
    texts = describe_failure(record, error, group, "ottla.work") | {OURS + name: text for name, text in ours.items()}
    return [*record.headers, *encode_texts(texts)]


def read_dead_letter(headers: Iterable[Header]) -> DeadLetter:
    """Return what the headers of a dead letter state: of a worker, of `ottla.process`, of Kafka Connect, or of a broker."""
    own: list[Header] = []
    texts: dict[str, str] = {}
    for name, value in headers:
        prefix = next((each for each in PREFIXES if name.startswith(each)), None)
        if prefix is None:
            own.append((name, value))
        else:
            texts[name.removeprefix(prefix)] = (value or b"").decode("utf-8", "replace")
    return DeadLetter(
        topic=texts.get("topic"),
        partition=maybe_number(texts.get("partition")),
        offset=maybe_number(texts.get("offset")),
        timestamp=maybe_number(texts.get("timestamp")),
        group=texts.get("group") or texts.get("connector.name"),
        attempts=maybe_number(texts.get("attempts") or texts.get("delivery.count")),
        error=texts.get("exception.class.name"),
        message=texts.get("exception.message") or texts.get("message"),
        headers=tuple(own),
    )


def maybe_number(text: str | None) -> int | None:
    """Return the number, or None if the text is missing or no number."""
    try:
        return None if text is None else int(text)
    except ValueError:
        return None
