"""The start of a log: a lost first segment is reported and a deleted one is not, at any moment of a kill."""

from __future__ import annotations

import errno
import os
import random
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from ottla.storage import repair
from ottla.storage.batches.damage import DamagedLogError, OutOfServiceError
from ottla.storage.inspection.directory_check import find
from ottla.storage.segments.log_start import read_deleted_before, record_deletion
from tests.storage.batches import NOW, append
from tests.storage.lost_files import filled, lose, opened
from tests.storage.moments import every_moment

pytestmark = pytest.mark.heavy

STARTS = "log-start-offset-checkpoint"
DEEDS = {"append": 4, "delete": 3, "retain": 3, "checkpoint": 1, "cut": 1, "anew": 0.5, "restart": 1}
"""The operations on a log, with their weights."""


@pytest.mark.behaviour("B2")
@pytest.mark.parametrize("clean", [True, False])
def test_a_missing_first_segment_is_reported_and_the_rest_is_served(
    tmp_path: Path, clean: bool, caplog: pytest.LogCaptureFixture
) -> None:
    lose(filled(tmp_path, 3, clean=clean), 0)
    for _ in range(2):  # it is not forgotten by a start
        caplog.clear()
        directory, log = opened(tmp_path)
        assert (log.start_offset, log.bases[0], log.end_offset) == (0, 2, 6)
        assert "offsets 0 to 1 are in no segment, and were not deleted" in caplog.text
        assert "ottla log repair" in caplog.text
        with pytest.raises(DamagedLogError, match="seek to offset 2 to go on without it") as caught:
            log.read(1, 1000)
        assert caught.value.damage.next_offset == 2
        assert log.read(2, 1000) is not None
        directory.close(clean=clean)


def test_a_first_segment_lost_before_the_first_checkpoint_is_reported_too(tmp_path: Path) -> None:
    directory, log = opened(tmp_path)
    for _ in range(6):
        append(log, b"a")
    directory.close(clean=False)
    lose(log.directory, 0)
    (fault,) = (each for each in faults(tmp_path) if "were not deleted" in each.reason)
    assert fault.offset == 0
    log = opened(tmp_path)[1]
    assert (log.start_offset, log.bases[0], log.lost is None) == (0, 2, False)


@pytest.mark.parametrize("gone", [True, False])
def test_a_log_older_than_the_checkpoint_files_is_not_reported(tmp_path: Path, gone: bool) -> None:
    lose(filled(tmp_path, 3), 0)
    for name in (STARTS, "recovery-point-offset-checkpoint"):
        (tmp_path / name).unlink()
        if not gone:
            (tmp_path / name).write_text("damaged")
    assert opened(tmp_path)[1].lost is None


def write_start(path: Path, offset: int) -> None:
    """Write the log start into the file."""
    (path / STARTS).write_text(f"0\n1\nflights 0 {offset}\n")


@pytest.mark.behaviour("B2")
def test_a_start_offset_beyond_the_end_is_reported_after_a_clean_stop(tmp_path: Path) -> None:
    filled(tmp_path, 3, clean=True)
    write_start(tmp_path, 7)
    assert [fault.reason for fault in faults(tmp_path)] == [
        "flights-0 is to begin at offset 7 and ends at 6: all its records are hidden. If they were not deleted, move this file away while no broker runs"
    ]
    with pytest.raises(OutOfServiceError, match=r"begin at offset 7, and its log ends at 6: .* move that file away"):
        opened(tmp_path)


@pytest.mark.behaviour("B2")
def test_a_power_loss_that_truncates_below_the_start_offset_is_reported(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    filled(tmp_path, 3, clean=False)
    write_start(tmp_path, 7)
    log = opened(tmp_path)[1]
    assert (log.start_offset, log.end_offset) == (6, 6)
    assert "by that all its records were deleted. If they were not deleted, stop the broker" in caplog.text


@pytest.mark.parametrize("clean", [True, False])
def test_a_start_offset_equal_to_the_end_is_not_reported(
    tmp_path: Path, clean: bool, caplog: pytest.LogCaptureFixture
) -> None:
    filled(tmp_path, 3, clean=clean)
    write_start(tmp_path, 6)
    assert not list(faults(tmp_path))
    log = opened(tmp_path)[1]
    assert (log.start_offset, log.end_offset, caplog.text) == (6, 6, "")


def test_deleting_the_missing_records_makes_the_log_healthy(tmp_path: Path) -> None:
    lose(filled(tmp_path, 3), 0)
    directory, log = opened(tmp_path)
    log.advance_start(2)
    directory.checkpoint()
    directory.close(clean=False)
    assert opened(tmp_path)[1].lost is None


def test_verify_reports_it_and_repair_accepts_it(tmp_path: Path) -> None:
    lose(filled(tmp_path, 3), 0)
    assert [fault.reason for fault in faults(tmp_path)] == [
        "offsets 0 to 1 are in no segment, and were not deleted: the log began at or below 0, and the first file that is left begins at 2"
    ]
    (found,) = repair.plan(tmp_path, [], {})
    assert found.remedy == "let the log start at offset 2"
    found.execute()
    assert not list(repair.plan(tmp_path, [], {}))
    assert not faults(tmp_path)
    log = opened(tmp_path)[1]
    assert (log.start_offset, log.lost) == (2, None)


def test_a_directory_with_an_incomplete_checkpoint_is_not_reported(tmp_path: Path) -> None:
    """Kafka's checkpoint omits logs without deletions, and lists deletions late."""
    lose(filled(tmp_path, 3), 0)
    recovery = tmp_path / "recovery-point-offset-checkpoint"
    recovery.write_text("0\n2\nflights 0 6\nflights 1 0\n")
    (tmp_path / STARTS).write_text("0\n1\nflights 0 0\n")
    log = opened(tmp_path)[1]
    assert (log.start_offset, log.lost) == (2, None)
    assert not faults(tmp_path)


def test_segments_can_be_deleted_on_a_full_disk(tmp_path: Path) -> None:
    filled(tmp_path, 3)
    _, log = opened(tmp_path)
    log.advance_start(4)
    real = os.open

    def full(path: Any, flags: int, mode: int = 0o777) -> int:
        if flags & os.O_CREAT:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(path, flags, mode)

    with mock.patch.object(os, "open", full):
        assert [segment.base_offset for segment in log.retain(NOW)] == [0, 2]


def test_the_later_of_two_start_offsets_is_used_and_kept(tmp_path: Path) -> None:
    for offset in (4, 7):
        record_deletion(tmp_path, offset)
    assert os.listdir(tmp_path) == [f"{7:020d}.deleted-before"]
    assert read_deleted_before(tmp_path) == 7


def test_records_deleted_before_a_kill_are_not_reported_as_missing(tmp_path: Path) -> None:
    filled(tmp_path, 3)
    directory, log = opened(tmp_path)
    log.advance_start(4)
    assert len(log.retain(NOW)) == 2
    directory.close(clean=False)
    assert (tmp_path / STARTS).read_text() == "0\n1\nflights 0 0\n"
    log = opened(tmp_path)[1]
    assert (log.start_offset, log.lost) == (4, None)


@pytest.mark.parametrize("seed", range(3))
def test_a_kill_never_makes_the_first_segment_appear_missing(tmp_path: Path, seed: int) -> None:
    moments = tmp_path / "moments"
    moments.mkdir()
    with every_moment(tmp_path / "data", moments):
        live(tmp_path / "data", random.Random(seed))
    found = sorted(moments.iterdir())
    assert len(found) > 50
    deleted = 0
    for moment in found:
        for _ in range(2):  # and once more, before anything was written down
            if not (moment / "meta.properties").exists():
                continue
            directory, log = opened(moment, replicated=True)
            assert log.lost is None, moment
            assert log.start_offset >= log.bases[0]
            deleted += log.bases[0] > 0
            directory.close(clean=False)
    assert deleted


def live(path: Path, chance: random.Random) -> None:
    """All that moves a log's beginning, in any order."""
    directory, log = opened(path, replicated=True)
    for _ in range(40):
        match chance.choices(list(DEEDS), list(DEEDS.values()))[0]:
            case "append":
                for _ in range(3):
                    append(log, b"a")
                log.advance_high_watermark(log.end_offset)
            case "delete":
                log.advance_start(chance.randint(0, log.high_watermark))
            case "retain":
                log.retain(NOW)
            case "checkpoint":
                log.flush()
                directory.checkpoint()
            case "cut":
                log.truncate_to(chance.randint(log.start_offset, log.end_offset), now_ms=NOW)
            case "anew":
                log.truncate_fully_and_start_at(log.end_offset + chance.randint(0, 3), now_ms=NOW)
            case "restart":
                directory.close(clean=chance.random() < 0.5)
                directory, log = opened(path, replicated=True)
                log.advance_high_watermark(log.end_offset)
    directory.close(clean=False)


def faults(path: Path) -> list[Any]:
    return [fault for check in find(path).run(lambda count: None) for fault in check.faults]
