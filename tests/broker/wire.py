"""A client that sends exactly the given messages, in any version, and returns exactly the responses."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Any, Self

from ottla.model import Header
from ottla.protocol.apis import api_of
from ottla.protocol.conversation import decode_response, encode_request
from ottla.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from ottla.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, PartitionData
from ottla.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from ottla.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    TopicProduceData,
)
from ottla.protocol.schema import Message
from ottla.records.builder import BatchBuilder
from ottla.records.columns import decode
from ottla.records.compression import Codec

LENGTH = struct.Struct(">i")
TIMEOUT = 20.0


class Wire:
    """One connection."""

    def __init__(self, bootstrap_servers: str, client_id: str | None = "wire") -> None:
        host, _, port = bootstrap_servers.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), timeout=TIMEOUT)
        # A frame is sent when `send` returns, also behind an unanswered one.
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.client_id = client_id
        self.correlation_id = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.socket.close()

    def send(self, request: Message, version: int | None = None) -> int:
        """Send without waiting; returns the correlation id."""
        self.correlation_id += 1
        version = api_of(request).versions.last if version is None else version
        parts = encode_request(request, version, self.correlation_id, self.client_id)
        self.send_frame(b"".join(bytes(part) for part in parts))  # type: ignore[arg-type]
        return self.correlation_id

    def send_frame(self, frame: bytes) -> None:
        """Send any bytes as a frame."""
        self.socket.sendall(LENGTH.pack(len(frame)) + frame)

    def receive(self, request: Message, version: int | None = None) -> tuple[int, Any]:
        """The correlation id and message of the next response, read as one to `request`."""
        api = api_of(request)
        return decode_response(api.response, api.versions.last if version is None else version, self.receive_frame())

    def receive_frame(self) -> memoryview:
        """The next frame; EOFError where the broker hung up."""
        return memoryview(self.read(LENGTH.unpack(self.read(4))[0]))

    def read(self, size: int) -> bytearray:
        data = bytearray()
        while len(data) < size:
            piece = self.socket.recv(size - len(data))
            if not piece:
                raise EOFError
            data += piece
        return data

    def ask(self, request: Message, version: int | None = None) -> Any:
        """Send and wait for the answer."""
        sent = self.send(request, version)
        correlation_id, response = self.receive(request, version)
        assert correlation_id == sent
        return response

    def receive_frame_of(self, request: Message, version: int = 12) -> memoryview:
        """Send a request and return the response without decoding it."""
        self.send(request, version)
        return self.receive_frame()

    def hung_up(self) -> bool:
        """True if the broker closes the connection without a response."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionResetError:
            return True

    def create(self, name: str, partitions: int = 1, **configs: object) -> None:
        """Make a topic."""
        pairs = [CreatableTopicConfig(key.replace("_", "."), str(value)) for key, value in configs.items()]
        topic = CreatableTopic(name, partitions, 1, configs=pairs)
        (result,) = self.ask(CreateTopicsRequest([topic])).topics
        assert result.error_code == 0, result.error_message

    def metadata(self, *names: str) -> MetadataResponse:
        """Return the metadata of topics, without creating any."""
        topics = [MetadataRequestTopic(name=name) for name in names]
        response: MetadataResponse = self.ask(MetadataRequest(topics, allow_auto_topic_creation=False))
        return response

    def metadata_of_all(self) -> MetadataResponse:
        """Return the metadata of every topic."""
        response: MetadataResponse = self.ask(MetadataRequest(None))
        return response

    def produce(
        self,
        topic: str,
        *values: bytes,
        partition: int = 0,
        version: int = 11,
        acks: int = -1,
        codec: Codec = Codec.NONE,
    ) -> PartitionProduceResponse:
        """Produce one batch and return its result."""
        response = self.ask(produce(topic, batch(values, codec), partition, acks), version)
        result: PartitionProduceResponse = response.responses[0].partition_responses[0]
        return result

    def fetch(self, topic: str, offset: int = 0, *, version: int = 12, **more: int) -> PartitionData:
        """Fetch from partition 0 and return what came."""
        response = self.ask(fetch(topic, offset, **more), version)
        assert response.error_code == 0
        found: PartitionData = response.responses[0].partitions[0]
        return found


def batch(
    values: Iterable[bytes], codec: Codec = Codec.NONE, timestamp: int = 1_000, headers: Sequence[Header] = ()
) -> bytes:
    """A record batch of values without keys."""
    builder = BatchBuilder(codec, max_bytes=2**30)
    for value in values:
        assert builder.append(timestamp, None, value, headers)
    return builder.build()


def produce(topic: str, records: bytes | None, partition: int = 0, acks: int = -1) -> ProduceRequest:
    """A request to append one batch."""
    return ProduceRequest(
        acks=acks,
        timeout_ms=1000,
        topic_data=[TopicProduceData(topic, partition_data=[PartitionProduceData(partition, records)])],
    )


def fetch(
    topic: str,
    offset: int = 0,
    *,
    partition: int = 0,
    max_wait_ms: int = 0,
    min_bytes: int = 1,
    max_bytes: int = 2**31 - 1,
    partition_max_bytes: int = 2**20,
    leader_epoch: int = -1,
) -> FetchRequest:
    """A request for one partition."""
    wanted = FetchPartition(partition, leader_epoch, offset, partition_max_bytes=partition_max_bytes)
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        topics=[FetchTopic(topic, partitions=[wanted])],
    )


def values(found: PartitionData, from_offset: int = 0) -> list[bytes | None]:
    """The values in fetched records."""
    columns = decode(bytes(found.records or b""), from_offset=from_offset)
    return [columns.value(row) for row in range(columns.count)]
