"""A Java program of 2019 with the client of that time works at our broker."""

from __future__ import annotations

import pytest

from interop import oldest_java


@pytest.mark.behaviour("P9")
def test_a_client_of_kafka_2_1_creates_a_topic_fills_copies_and_deletes_it(ottla_broker: str) -> None:
    assert oldest_java.run_program(ottla_broker, "oldest") == [
        "4 partitions, kept for 12345678 ms",
        "written with none, gzip, snappy, lz4, zstd",
        "read 500, then [committed]",
        "the group is Empty",
        "records from 7 on, and then not any more there",
    ]
