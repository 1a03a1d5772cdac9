"""A common interface for all clients: write rows to partition 0 of a topic, and read that many rows back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from interop.clients import aiokafka, confluent, kafka_python, ours, ours_arrow
from interop.rows import Row


class Client(Protocol):
    """The interface of each module in this folder."""

    def produce(self, address: str, topic: str, rows: Sequence[Row], codec: str) -> None: ...

    def consume(self, address: str, topic: str, count: int) -> list[Row]: ...


CLIENTS: dict[str, Client] = {
    "confluent-kafka": confluent,
    "kafka-python": kafka_python,
    "aiokafka": aiokafka,
    "ottla": ours,
    "ottla-arrow": ours_arrow,
}
OURS = ("ottla", "ottla-arrow")
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
