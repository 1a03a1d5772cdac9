"""Files on the wire: the same bytes by `sendfile` and by copying."""

from __future__ import annotations

import errno
import os
import random
from pathlib import Path

import pytest

from ottla.model import FileSlice, Part
from tests.network.conftest import Stage, until


def refuse(*_: int) -> int:
    raise OSError(errno.EINVAL, "not for this file system")


@pytest.mark.parametrize("way", ["sendfile", "refused", "missing"])
def test_slices_of_files_and_bytes_arrive_in_order(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    if way == "refused":
        monkeypatch.setattr(os, "sendfile", refuse)
    elif way == "missing":
        monkeypatch.delattr(os, "sendfile")
    chance = random.Random(3)
    content = chance.randbytes(3_000_000)
    (tmp_path / "log").write_bytes(content)
    server, channel, client = stage.pair()
    expected = []
    with (tmp_path / "log").open("rb") as file:
        for _ in range(20):
            parts: list[Part] = []
            frame = b""
            for _ in range(chance.randrange(1, 6)):
                start, size = chance.randrange(2_000_000), chance.choice([0, 1, 5000, 900_000])
                parts += [FileSlice(file, start, size), b"between" * chance.randrange(3)]
                frame += content[start : start + size] + bytes(parts[-1])  # type: ignore[arg-type]
            expected.append(frame)
            server.selector.send(channel, parts)
        until(lambda: len(client.frames) == 20, server, client)
    assert client.frames == expected
    assert server.sent == [channel] * 20


def test_a_small_piece_of_a_file_is_sent_in_one_call_with_the_bytes_around_it(stage: Stage, tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"0123456789")
    server, channel, client = stage.pair()
    with (tmp_path / "log").open("rb") as file, pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "sendfile", refuse)
        server.selector.send(channel, [b"<", FileSlice(file, 2, 3), b">"])
        file.close()
        until(lambda: client.frames, server, client)
    assert client.frames == [b"<234>"]


def test_hundreds_of_small_parts_are_one_frame(stage: Stage) -> None:
    server, channel, client = stage.pair()
    parts = [bytes([i % 256]) * (i % 7) for i in range(500)]
    server.selector.send(channel, parts)
    until(lambda: client.frames, server, client)
    assert client.frames == [b"".join(parts)]


@pytest.mark.parametrize(("size", "missing"), [(10, "10 bytes at 0"), (100_000, "99995 bytes at 5")])
def test_a_file_that_ends_early_ends_the_connection_with_the_reason(
    stage: Stage, tmp_path: Path, size: int, missing: str
) -> None:
    (tmp_path / "log").write_bytes(b"short")
    server, channel, client = stage.pair()
    with (tmp_path / "log").open("rb") as file:
        server.selector.send(channel, [FileSlice(file, 0, size)])
        until(lambda: server.gone and client.gone, server, client)
    assert server.gone[channel] == f"a file ended before the {missing} could be sent"
