"""Measure how the cost of a request grows with the number of the broker's partitions and connections.

Each request produces one record to a random partition and fetches it again. The measured value is the processor time of
the broker, which should not grow. The plot is written to `out/growth.png`.
"""

from __future__ import annotations

import random
import socket
import struct
from collections.abc import Sequence
from pathlib import Path

from rich.table import Table

from benchmarks.brokers import Running, ottla_broker
from benchmarks.race import cpu_seconds, show
from ottla.protocol.conversation import encode_request
from ottla.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.protocol.schema import Message
from ottla.records.builder import BatchBuilder

PARTITIONS = (10, 100, 1_000, 10_000)
CONNECTIONS = (1, 10, 100, 1_000)
REQUESTS = 10_000
AIM = 1.5
"""The maximum ratio of the most expensive request to the cheapest."""
LENGTH = struct.Struct(">i")
VERSIONS: dict[type[Message], int] = {ProduceRequest: 9, FetchRequest: 11, CreateTopicsRequest: 7}


class Line:
    """A connection with one request at a time."""

    def __init__(self, server: Running) -> None:
        host, _, port = server.bootstrap.rpartition(":")
        self._socket = socket.create_connection((host, int(port)))
        self._file = self._socket.makefile("rb")

    def ask(self, request: Message) -> bytes:
        """Send the request and return the frame of the response."""
        parts = encode_request(request, VERSIONS[type(request)], 1, "growth")
        frame = b"".join(bytes(part) for part in parts)  # type: ignore[arg-type]
        self._socket.sendall(LENGTH.pack(len(frame)) + frame)
        return self._file.read(LENGTH.unpack(self._file.read(4))[0])

    def close(self) -> None:
        """Close the connection."""
        self._file.close()
        self._socket.close()


def microseconds(server: Running, partitions: int, connections: int) -> float:
    """Return the processor time of the broker for one request, in microseconds."""
    lines = [Line(server) for _ in range(connections)]
    chance = random.Random(partitions + connections)
    data = batch()
    for number in range(min(partitions, 1_000)):
        exchange(lines[0], number, data)  # files that are opened at their first use are open now
    before = cpu_seconds(server.process)
    for number in range(REQUESTS // 2):
        exchange(lines[number % connections], chance.randrange(min(partitions, 1_000)), data)
    used = cpu_seconds(server.process) - before
    for line in lines:
        line.close()
    return used / REQUESTS * 1e6


def exchange(line: Line, number: int, data: bytes) -> None:
    """Produce a record and fetch records."""
    line.ask(
        ProduceRequest(
            None, 1, 30_000, [TopicProduceData("growth", partition_data=[PartitionProduceData(number, data)])]
        )
    )
    wanted = FetchPartition(number, fetch_offset=0, partition_max_bytes=1)
    line.ask(
        FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=1000, topics=[FetchTopic("growth", partitions=[wanted])])
    )


def batch() -> bytes:
    """A batch of one record."""
    builder = BatchBuilder()
    builder.append(0, None, bytes(100), ())
    return bytes(builder.build())


def with_partitions(count: int) -> float:
    """Start a broker with this number of partitions, and one connection."""
    with ottla_broker() as server:
        line = Line(server)
        line.ask(CreateTopicsRequest([CreatableTopic("growth", count, 1)], timeout_ms=30_000))
        line.close()
        return microseconds(server, count, 1)


def with_connections(count: int) -> float:
    """Start a broker with this number of connections, and ten partitions."""
    with ottla_broker() as server:
        line = Line(server)
        line.ask(CreateTopicsRequest([CreatableTopic("growth", 10, 1)], timeout_ms=30_000))
        line.close()
        return microseconds(server, 10, count)


def draw(curves: Sequence[tuple[str, Sequence[int], Sequence[float]]]) -> Path:
    """Draw the plot."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 4))
    for name, counts, costs in curves:
        axes.plot(counts, costs, marker="o", label=name)
    axes.set(xscale="log", xlabel="how many there are", ylabel="µs of processor time a request")
    axes.set_ylim(bottom=0)
    axes.set_title("What a request costs the broker")
    axes.grid(alpha=0.3)
    axes.legend()
    path = Path("out", "growth.png")
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, dpi=120, bbox_inches="tight")
    return path


def main() -> None:
    curves = [
        ("partitions", PARTITIONS, [with_partitions(count) for count in PARTITIONS]),
        ("connections", CONNECTIONS, [with_connections(count) for count in CONNECTIONS]),
    ]
    shown = Table(title="what a request costs the broker", title_justify="left")
    for heading in ("", "how many", "µs of processor time", "to the cheapest", "aim"):
        shown.add_column(heading, justify="right")
    for name, counts, costs in curves:
        for count, cost in zip(counts, costs, strict=True):
            shown.add_row(name, f"{count:,}", f"{cost:.0f}", f"{cost / min(costs):.2f}", f"≤ {AIM}")
    show(shown)
    print(f"drawn in {draw(curves)}")


if __name__ == "__main__":
    main()
