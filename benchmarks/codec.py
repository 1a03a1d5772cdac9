"""Encode and decode a Metadata response of a thousand partitions, next to kio and, for decoding, kafka-python."""

from __future__ import annotations

import io
from collections.abc import Callable

from kafka.protocol.metadata import MetadataResponse as KafkaPythonResponse
from kio.schema.metadata.v9.response import MetadataResponse as KioResponse
from kio.serial import entity_reader, entity_writer

from benchmarks.race import Contender, race
from ottla.protocol.conversation import decode_response, encode_response
from ottla.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

VERSION = 9
HEADER_BYTES = 5
TURN = 10
"""The number of messages in one turn."""


def message(topics: int = 100, partitions: int = 10) -> MetadataResponse:
    """Return a Metadata response, the first response that a client parses."""
    states = [
        MetadataResponsePartition(
            partition_index=n, leader_id=1, leader_epoch=3, replica_nodes=[1, 2, 3], isr_nodes=[1, 2, 3]
        )
        for n in range(partitions)
    ]
    return MetadataResponse(
        brokers=[MetadataResponseBroker(node_id=1, host="127.0.0.1", port=9092)],
        topics=[MetadataResponseTopic(name=f"topic-{n}", partitions=states) for n in range(topics)],
    )


def turn(work: Callable[[], object]) -> Callable[[], int]:
    """Return a function that does this work for one turn."""

    def run() -> int:
        for _ in range(TURN):
            work()
        return TURN

    return run


def main() -> None:
    ours = message()
    frame = b"".join(bytes(part) for part in encode_response(ours, VERSION, 7) if not hasattr(part, "file"))
    body = frame[HEADER_BYTES:]
    read, write = entity_reader(KioResponse), entity_writer(KioResponse)
    kio, _ = read(body, 0)
    race(
        "decode a Metadata response of 1,000 partitions",
        [
            Contender("ottla", turn(lambda: decode_response(MetadataResponse, VERSION, memoryview(frame)))),
            Contender("kafka-python", turn(lambda: KafkaPythonResponse.decode(frame, version=VERSION, header=True))),
            Contender("kio", turn(lambda: read(body, 0))),
        ],
        unit="messages/s",
    )
    race(
        "encode it",
        [
            Contender("ottla", turn(lambda: encode_response(ours, VERSION, 7))),
            Contender("kio", turn(lambda: write(io.BytesIO(), kio))),
        ],
        unit="messages/s",
    )


if __name__ == "__main__":
    main()
