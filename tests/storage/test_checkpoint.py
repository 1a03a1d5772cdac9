"""Damaged checkpoints are ignored, and the log reports the damage."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.model import TopicPartition
from ottla.storage.files.checkpoint import read_offsets, write_offsets
from ottla.storage.leader_epochs import FILE_NAME, LeaderEpochs

OFFSETS = {TopicPartition("t", 0): 12, TopicPartition("u", 3): 7}


def test_written_offsets_are_read_back(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "recovery-point-offset-checkpoint"
    write_offsets(path, OFFSETS)
    assert path.read_bytes() == b"0\n2\nt 0 12\nu 3 7\n"
    assert read_offsets(path) == OFFSETS
    assert read_offsets(tmp_path / "none") == {}
    assert caplog.messages == []


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"1\n1\nt 0 12\n", "does not begin with version 0"),
        (b"0\n", "does not begin with version 0"),
        (b"0\n2\nt 0 12\n", "announces 2 rows and has 1"),
        (b"0\nx\nt 0 12\n", "announces x rows and has 1"),
        (b"0\n1\nt 12\n", "has '12' where 2 whole numbers belong"),
        (b"0\n1\nt 0 1 2\n", "has '0 1 2' where 2 whole numbers belong"),
        (b"0\n1\nt 0 1*\n", "has '0 1*' where 2 whole numbers belong"),
        (b"0\n1\n\n", "has '' where 2 whole numbers belong"),
        (b"0\n1\nt 0 -1\n", "has -1 where an offset belongs"),
        (b"0\n1\nt 0 9223372036854775808\n", "has 9223372036854775808 where an offset belongs"),
        (b"0\n1\n\xf4 0 12\n", "is no text: it has byte 0xf4 at 4"),
    ],
)
def test_a_damaged_checkpoint_is_ignored_with_a_reason(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, content: bytes, reason: str
) -> None:
    path = tmp_path / "log-start-offset-checkpoint"
    path.write_bytes(content)
    assert read_offsets(path) == {}
    assert caplog.messages == [f"{path} is damaged and passed over: {path} {reason}"]


def test_an_empty_checkpoint_has_no_offsets(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "log-start-offset-checkpoint"
    path.touch()
    assert read_offsets(path) == {}
    assert caplog.messages == []


def test_unreadable_epochs_are_rebuilt(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / FILE_NAME
    path.write_bytes(b"0\n1\n0\n")
    assert LeaderEpochs(tmp_path).entries == []
    (line,) = caplog.messages
    assert line == f"{path} is damaged ({path} has '0' where 2 whole numbers belong): " + (
        "the leader epochs are found in the batches again"
    )
