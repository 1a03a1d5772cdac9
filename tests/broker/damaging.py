"""A data directory whose broker was killed, copies of it with damaged bytes, and the result of a start with each copy."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

from ottla.broker.embedding.embedded_broker import Broker
from ottla.errors import OttlaError
from ottla.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tests.broker.wire import Wire, values
from tests.patience import eventually

RECORDS = [b"a", b"b", b"c"]
TOPICS = ("t", "u")


def crashed(path: Path) -> Path:
    """Topics t and u with three records each, a group with an offset, and `kill -9`."""
    broker = Broker(path, process=True, log_flush_offset_checkpoint_interval_ms=20).start()
    with Wire(broker.bootstrap_servers) as wire:
        for topic in TOPICS:
            wire.create(topic, flush_messages=1)
            for value in RECORDS:
                assert wire.produce(topic, value).error_code == 0
        assert commit(wire, 2) == 0
        wait_for_checkpoint(path)
    kill(broker)
    return path


def wait_for_checkpoint(path: Path) -> None:
    """Wait until the checkpoints list both topics; the checkpoint of start offsets is written last."""
    points, starts = path / "recovery-point-offset-checkpoint", path / "log-start-offset-checkpoint"
    wanted = {"t 0 3", "u 0 3"}
    eventually(lambda: points.exists() and starts.exists() and wanted <= set(points.read_text().splitlines()))


def kill(broker: Broker) -> None:
    os.kill(broker.pid, signal.SIGKILL)
    broker.close()


def commit(wire: Wire, offset: int) -> int:
    """Commit an offset of t for the group g."""
    topic = OffsetCommitRequestTopic("t", partitions=[OffsetCommitRequestPartition(0, offset)])
    response = wire.ask(OffsetCommitRequest("g", topics=[topic]), 8)
    code: int = response.topics[0].partitions[0].error_code
    return code


def flipped(original: Path, name: str, scratch: Path, step: int = 1) -> Iterator[tuple[int, Path]]:
    """Copies of a directory, each with one bit of the file `name` changed: which byte, and the copy."""
    size = (original / name).stat().st_size
    for position in range(0, size, step):
        copy = scratch / "copy"
        shutil.copytree(original, copy)
        data = bytearray((copy / name).read_bytes())
        data[position] ^= 1 << (position * 5 % 8)
        (copy / name).write_bytes(data)
        yield position, copy
        shutil.rmtree(copy)


def stored(path: Path) -> dict[str, bytes]:
    """Every log in a directory; Broker's own chores change other files."""
    return {str(log.relative_to(path)): log.read_bytes() for log in path.rglob("*.log") if log.is_file()}


def served(path: Path) -> dict[str, list[bytes | None]] | str:
    """Return the records or error code per topic, or the error with which the broker does not start."""
    before = stored(path)
    try:
        broker = Broker(path).start()
    except OttlaError as error:
        assert stored(path) == before
        return str(error)
    try:
        with Wire(broker.bootstrap_servers) as wire:
            found = {topic: records_of(wire, topic) for topic in TOPICS}
    finally:
        broker.close()
    after = stored(path)
    for name, data in before.items():
        assert after[name] == data or name.startswith("__"), name
        assert after[name][: len(data)] == data or name.startswith("__cluster_metadata"), name
    assert not list(path.glob("*-stray"))
    return found


def records_of(wire: Wire, topic: str) -> list[bytes | None]:
    answer = wire.fetch(topic)
    return [b"%d" % answer.error_code] if answer.error_code else values(answer)
