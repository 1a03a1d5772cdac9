"""The results of a processing function: records to send."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from ottla.model import Header


class Outgoing(NamedTuple):
    """A record to send. Without a topic it is sent to the topic `to` of the processor.

    In the Arrow form the value may be a table with the columns value, key and headers.
    """

    value: Any = None
    key: Any = None
    topic: str | None = None
    partition: int | None = None
    timestamp: int | None = None
    headers: Iterable[Header] | Mapping[str, bytes | None] | None = None


def to_outgoing(result: Any) -> Iterator[Outgoing]:
    """Convert the result of a function to records: None to no record, a value to one, a list or generator to several."""
    if result is None:
        return
    if isinstance(result, Outgoing):
        yield result
    elif isinstance(result, list) or (isinstance(result, Iterator) and not isinstance(result, (str, bytes))):
        for each in result:
            yield from to_outgoing(each)
    else:
        yield Outgoing(result)
