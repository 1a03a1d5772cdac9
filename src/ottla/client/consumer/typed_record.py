"""The record class for type checkers, generic in key and value, which the compiled class cannot be.

At run time there is only the class of `record.py`; this module re-exports it.
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
        """A record with its metadata; key and value are deserialized on first access."""

        @property
        def key(self) -> K | None:
            """The key: bytes, None if absent, or the result of `key.deserializer`."""

        @property
        def value(self) -> V | None:
            """The value: bytes, None if absent, or the result of `value.deserializer`."""
else:
    from typing import TypeVar

    from ottla.client.consumer.record import ConsumerRecord as ConsumerRecord

    K = TypeVar("K", covariant=True)
    V = TypeVar("V", covariant=True)
