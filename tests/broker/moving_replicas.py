"""Moves of copies between the directories of one broker, for tests."""

from __future__ import annotations

import itertools
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ottla import Consumer
from ottla.broker.embedding.embedded_broker import Broker
from ottla.model import TopicPartition
from ottla.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from ottla.protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from tests.broker.wire import Wire

LOOP = "ottla-127."
"""The prefix of the name of a broker thread."""


def start(disks: list[Path], **settings: Any) -> Broker:
    return Broker(log_dirs=",".join(map(str, disks)), **settings)


def move(wire: Wire, topic: str, to: Path, *partitions: int) -> list[int]:
    """Send the request and return the error code of each partition."""
    wanted = AlterReplicaLogDir(str(to), [AlterReplicaLogDirTopic(topic, partitions or (0,))])
    results = wire.ask(AlterReplicaLogDirsRequest([wanted])).results
    return [each.error_code for result in results for each in result.partitions]


def copies(wire: Wire, topic: str = "t") -> dict[int, list[tuple[Path, bool, int]]]:
    """Return per partition its directory, whether it is a future replica, and its lag."""
    found: dict[int, list[tuple[Path, bool, int]]] = {}
    for directory in wire.ask(DescribeLogDirsRequest(None)).results:
        for reported in directory.topics:
            for each in reported.partitions if reported.name == topic else ():
                place = (Path(directory.log_dir), each.is_future_key, each.offset_lag)
                found.setdefault(each.partition_index, []).append(place)
    return found


def find_directory(wire: Wire, topic: str = "t", partition: int = 0) -> Path | None:
    """The directory of a copy; None while it moves, or is not there yet."""
    places = copies(wire, topic).get(partition, [])
    return places[0][0] if len(places) == 1 and not places[0][1] else None


def committed(address: str, topic: str = "t", partition: int = 0) -> list[tuple[int, bytes | None]]:
    """All records that are committed, with their offsets."""
    place = TopicPartition(topic, partition)
    found: list[tuple[int, bytes | None]] = []
    with Consumer(
        bootstrap_servers=address, isolation_level="read_committed", auto_offset_reset="earliest"
    ) as consumer:
        consumer.assign([place])
        end = consumer.end_offsets([place])[place]
        while consumer.position(place) < end:
            found += [(each.offset, each.value) for each in consumer.poll(0.1)]
    return found


@contextmanager
def photographed(patch: pytest.MonkeyPatch, disks: list[Path], to: Path) -> Iterator[list[Path]]:
    """Copy to `to` the files that a kill would leave before each rename and each flush."""
    images: list[Path] = []
    numbers = itertools.count()
    seen: list[list[tuple[str, int]]] = []
    taking = threading.Lock()

    def before(act: Callable[..., Any]) -> Callable[..., Any]:
        def acting(*args: Any, **more: Any) -> Any:
            if threading.current_thread().name.startswith(LOOP) and taking.acquire(blocking=False):
                now = listed(disks)
                if now not in seen:
                    seen.append(now)
                    image = to / f"{next(numbers)}"
                    for disk in disks:
                        shutil.copytree(disk, image / disk.name, ignore=shutil.ignore_patterns("*-delete", ".lock"))
                    images.append(image)
                taking.release()
            return act(*args, **more)

        return acting

    with patch.context() as patched:
        for name in ("rename", "replace", "fsync", "mkdir"):
            patched.setattr(os, name, before(getattr(os, name)))
        yield images


def listed(disks: list[Path]) -> list[tuple[str, int]]:
    """All files and folders with their sizes."""
    paths = sorted(path for disk in disks for path in disk.rglob("*") if "-delete" not in str(path))
    return [(str(path), path.stat().st_size if path.is_file() else 0) for path in paths]
