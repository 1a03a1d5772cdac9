"""`quorum-state`: what Kafka writes is read, what we write it reads, and no crash leaves less than a promise."""

from __future__ import annotations

import json
import random
import uuid
from contextlib import suppress
from pathlib import Path

import pytest

from ottla.errors import CorruptRecordError
from ottla.storage.state_log.quorum_state import (
    BY_ID_ALONE,
    FILE_NAME,
    QuorumState,
    format_state,
    read_quorum_state,
    write_quorum_state,
)
from tests.storage.faulty_disk import FaultyDisk

OF_KAFKA = b'{"leaderId":1,"leaderEpoch":4,"votedId":2,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAQ","data_version":1}'
OF_OLD_KAFKA = (
    b'{"clusterId":"","leaderId":-1,"leaderEpoch":7,"votedId":3,"appliedOffset":0,'
    b'"currentVoters":[{"voterId":1},{"voterId":3}],"data_version":0}'
)


def test_a_file_written_by_kafka_is_read(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).write_bytes(OF_KAFKA)
    assert read_quorum_state(tmp_path) == QuorumState(4, 1, 2, uuid.UUID(int=1))
    (tmp_path / FILE_NAME).write_bytes(OF_OLD_KAFKA)
    assert read_quorum_state(tmp_path) == QuorumState(7, -1, 3)


def test_a_file_is_written_as_by_kafka(tmp_path: Path) -> None:
    write_quorum_state(tmp_path, QuorumState(4, 1, 2, uuid.UUID(int=1)))
    assert (tmp_path / FILE_NAME).read_bytes() == OF_KAFKA
    write_quorum_state(tmp_path, QuorumState(7, -1, 3), BY_ID_ALONE)
    ours, theirs = json.loads((tmp_path / FILE_NAME).read_bytes()), json.loads(OF_OLD_KAFKA)
    assert ours == {**theirs, "currentVoters": []}


def test_without_a_file_there_was_no_vote(tmp_path: Path) -> None:
    assert read_quorum_state(tmp_path) is None


def test_a_damaged_file_fails_the_start_and_is_never_recreated(tmp_path: Path) -> None:
    chance = random.Random(1)
    for _ in range(500):
        data = bytearray(OF_KAFKA)
        data[chance.randrange(len(data))] = chance.randrange(256)
        del data[chance.choice((len(data), chance.randrange(len(data)))) :]
        (tmp_path / FILE_NAME).write_bytes(data)
        with suppress(CorruptRecordError):
            assert isinstance(read_quorum_state(tmp_path), QuorumState)
        assert (tmp_path / FILE_NAME).read_bytes() == data


@pytest.mark.parametrize(
    "damage",
    [
        {"votedId": True},
        {"votedId": "1"},
        {"leaderId": -2},
        {"leaderEpoch": -1},
        {"data_version": 2},
        {"votedDirectoryId": "short"},
        {"votedDirectoryId": None},
    ],
    ids=str,
)
def test_impossible_values_are_damage(tmp_path: Path, damage: dict[str, object]) -> None:
    (tmp_path / FILE_NAME).write_text(json.dumps({**json.loads(OF_KAFKA), **damage}))
    with pytest.raises(CorruptRecordError, match=r"quorum-state cannot be read \(.+\)$"):
        read_quorum_state(tmp_path)


def test_a_vote_that_was_written_survives_the_loss_of_power(tmp_path: Path) -> None:
    for seed in range(20):
        folder = tmp_path / str(seed)
        folder.mkdir()
        with FaultyDisk(folder, random.Random(seed)) as disk:
            for epoch in range(1, 5):
                write_quorum_state(folder, QuorumState(epoch, -1, epoch))
            disk.lose_power()
        assert read_quorum_state(folder) == QuorumState(4, -1, 4)


def test_its_text_is_one_line() -> None:
    assert "\n" not in format_state(QuorumState(), 1)
