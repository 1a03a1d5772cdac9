"""What a function makes of what it was given: records to send."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from ottla.model import Header


class Outgoing(NamedTuple):
    """A record to send; without a topic it goes where `to` says.

    In the Arrow form the value may be a table, whose columns are keys, values and headers then.
    """

    value: Any = None
    key: Any = None
    topic: str | None = None
    partition: int | None = None
    timestamp: int | None = None
    headers: Iterable[Header] | Mapping[str, bytes | None] | None = None


def outgoing(result: Any) -> Iterator[Outgoing]:
    """A function's result as records: None is none, a value is a record of it, a list or generator has several."""
    if result is None:
        return
    if isinstance(result, Outgoing):
        yield result
    elif isinstance(result, list) or (isinstance(result, Iterator) and not isinstance(result, (str, bytes))):
        for each in result:
            yield from outgoing(each)
    else:
        yield Outgoing(result)
