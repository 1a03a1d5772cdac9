"""Idempotent producers that lose the responses to appended batches, and Kafka's tool for the producer state."""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from aiokafka import AIOKafkaProducer
from confluent_kafka import Producer as ConfluentProducer
from kafka import KafkaProducer

from interop.kafka_tools import dump, tool
from ottla import Broker, Consumer, TopicPartition
from ottla.protocol.messages.write_txn_markers import WritableTxnMarker, WritableTxnMarkerTopic, WriteTxnMarkersRequest
from tests.broker.wire import Wire, produce
from tests.storage.producing import produced

PRODUCE_KEY = 0
PATIENCE = 30.0
VALUES = [b"%d" % number for number in range(50)]


class Cutter:
    """A proxy that cuts a connection after a produce response has arrived, and discards the response."""

    def __init__(self, cuts: int) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self.listener.getsockname()[1]
        self.target: tuple[str, int] = ("", 0)
        self.left = cuts
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        """Forward one request and its response at a time. Pipelined requests wait in the socket."""
        try:
            with client, socket.create_connection(self.target) as broker:
                while (request := frame(client)) is not None:
                    broker.sendall(request)
                    answer = frame(broker)
                    (key,) = struct.unpack_from(">h", request, 4)
                    if answer is None or (key == PRODUCE_KEY and self._cuts()):
                        return
                    client.sendall(answer)
        except OSError:
            pass

    def _cuts(self) -> bool:
        self.left -= 1
        return self.left >= 0


def frame(source: socket.socket) -> bytes | None:
    """Read the next frame with its length. Returns None at the end."""
    head = source.recv(4, socket.MSG_WAITALL)
    if len(head) < 4:
        return None
    return head + source.recv(int.from_bytes(head, "big"), socket.MSG_WAITALL)


@pytest.fixture
def cutter() -> Iterator[Cutter]:
    cutter = Cutter(cuts=3)
    yield cutter
    cutter.listener.close()


@pytest.fixture
def broker(tmp_path: Path, cutter: Cutter) -> Iterator[Broker]:
    """A broker with the proxy's address as its only advertised listener."""
    with Broker(tmp_path / "data", advertised_listeners=f"127.0.0.1:{cutter.port}") as broker:
        host, _, port = broker.bootstrap_servers.rpartition(":")
        cutter.target = (host, int(port))
        yield broker


def by_confluent(address: str) -> list[int]:
    offsets: list[int] = []
    producer = ConfluentProducer({"bootstrap.servers": address, "enable.idempotence": True, "linger.ms": 5})
    for value in VALUES:
        producer.produce("t", value, on_delivery=lambda error, message: offsets.append(message.offset() or 0))
    assert producer.flush(PATIENCE) == 0
    return offsets


def by_kafka_python(address: str) -> list[int]:
    producer = KafkaProducer(bootstrap_servers=address, enable_idempotence=True, linger_ms=5)
    futures = [producer.send("t", value) for value in VALUES]
    offsets = [future.get(PATIENCE).offset for future in futures]
    producer.close()
    return offsets


def by_aiokafka(address: str) -> list[int]:
    async def run() -> list[int]:
        async with AIOKafkaProducer(bootstrap_servers=address, enable_idempotence=True, linger_ms=5) as producer:
            futures = [await producer.send("t", value) for value in VALUES]
            return [(await future).offset for future in futures]

    return asyncio.run(run())


def by_java(address: str) -> list[int]:
    tool(
        "ConsoleProducer",
        "--bootstrap-server",
        address,
        "--topic",
        "t",
        "--command-property",
        "enable.idempotence=true",
        "--command-property",
        "batch.size=64",
        stdin="".join(f"{value.decode()}\n" for value in VALUES),
    )
    return list(range(len(VALUES)))


@pytest.mark.parametrize("produce_by", [by_confluent, by_kafka_python, by_aiokafka, by_java])
def test_batches_that_are_resent_after_a_lost_response_are_stored_once_and_in_order(
    broker: Broker, cutter: Cutter, produce_by: Callable[[str], list[int]]
) -> None:
    with Wire("{}:{}".format(*cutter.target)) as wire:
        wire.create("t")
    assert produce_by(f"127.0.0.1:{cutter.port}") == list(range(len(VALUES)))
    assert cutter.left < 0
    with Consumer(bootstrap_servers=f"127.0.0.1:{cutter.port}") as consumer:
        consumer.assign([TopicPartition("t", 0)])
        consumer.seek_to_beginning(TopicPartition("t", 0))
        values: list[object] = []
        while len(values) < consumer.end_offsets([TopicPartition("t", 0)])[TopicPartition("t", 0)]:
            values += [record.value for record in consumer.poll(timeout=1)]
    assert values == VALUES


def test_kafkas_tool_reads_producer_snapshots_and_aborted_transactions(tmp_path: Path) -> None:
    # No coordinator knows this transaction.
    with (
        Broker(tmp_path, transaction_partition_verification_enable=False) as broker,
        Wire(broker.bootstrap_servers) as wire,
    ):
        wire.create("t")
        for sequence in (0, 3):
            request = produce("t", produced(7, sequence, 3, epoch=1, transactional=True))
            request.transactional_id = "tx"
            wire.ask(request, 9)
        abort(wire)
        wire.ask(produce("t", produced(8, 0, 2)), 9)
    (snapshot,) = (tmp_path / "t-0").glob("*.snapshot")
    (index,) = (tmp_path / "t-0").glob("*.txnindex")
    lines = [line for line in dump(snapshot).splitlines() if line.startswith("producerId")]
    assert [line.split()[1] for line in lines] == ["7", "7", "8"]
    assert "producerEpoch: 1 coordinatorEpoch: 4" in lines[1]
    assert "firstSequence: 3 lastSequence: 5 lastOffset: 5 offsetDelta: 2" in lines[1]
    assert "producerId: 7 firstOffset: 0 lastOffset: 6 lastStableOffset: 7" in dump(index)


def abort(wire: Wire) -> None:
    """Abort the transaction of producer id 7."""
    wire.ask(WriteTxnMarkersRequest([WritableTxnMarker(7, 1, False, [WritableTxnMarkerTopic("t", [0])], 4)]), 1)
