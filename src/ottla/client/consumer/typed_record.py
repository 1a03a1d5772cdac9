"""A record as type checkers see it: generic in its key and value, which the compiled class cannot be.

When the program runs there is one class, that of `record.py`, and this module only names it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Generic

    from typing_extensions import TypeVar

    from ottla.client.consumer import record

    K = TypeVar("K", default=bytes, covariant=True)
    V = TypeVar("V", default=bytes, covariant=True)

    class ConsumerRecord(record.ConsumerRecord, Generic[K, V]):
        """A record with its place and time; key and value are made when they are first asked for."""

        @property
        def key(self) -> K | None:
            """The key: bytes, None without one, or what `key.deserializer` made of it."""

        @property
        def value(self) -> V | None:
            """The value: bytes, None without one, or what `value.deserializer` made of it."""
else:
    from typing import TypeVar

    from ottla.client.consumer.record import ConsumerRecord as ConsumerRecord

    K = TypeVar("K", covariant=True)
    V = TypeVar("V", covariant=True)
