"""Every file derived from a log, with each bit flipped: `verify` names the file, and the log is served unchanged.

A sample of the bits is flipped; `OTTLA_FLIPS=all` flips every bit.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.records.batch import BatchHeader, iter_headers
from ottla.records.control import ControlType
from ottla.records.end_marker import EndMarker, encode_end_marker
from ottla.storage.files.checkpoint import write_rows
from ottla.storage.indexes.transaction_index import FILE_NAME, read_aborting, record_aborting
from ottla.storage.inspection.index_check import OFFSET_ENTRY, TIME_ENTRY
from ottla.storage.inspection.partition_check import PartitionCheck
from ottla.storage.inspection.state_files import ABORTED
from ottla.storage.log import Log
from ottla.storage.log_config import LogConfig
from ottla.storage.producers.producer_entry import Origin
from ottla.storage.producers.producer_snapshot import encode_snapshot, read_snapshot, snapshot_path
from tests.storage.batches import NOW, batch, open_log
from tests.storage.compacting import compact, keyed, roll
from tests.storage.producing import end, produced, send
from tests.storage.test_flipped_bits import FLIPS, copied, flipped, flips, truth
from tests.storage.test_inspection import faults
from tests.storage.unforced import nothing_is_forced  # noqa: F401 (a fixture that acts by being here)

pytestmark = pytest.mark.heavy

SMALL = LogConfig(segment_bytes=1500, index_interval_bytes=100)
DERIVED = (".index", ".timeindex", ".snapshot", ".txnindex", "leader-epoch-checkpoint")


def written(folder: Path) -> Log:
    """Create a log with overlapping transactions, equal and decreasing times, and some leader changes."""
    log = open_log(folder, SMALL)
    for turn in range(6):
        epoch = 1 + turn // 2
        for number in range(4):
            data = batch(b"x" * number, b"y", timestamps=[NOW + turn - turn % 2 * number] * 2)
            log.append(data, leader_epoch=epoch, now_ms=NOW)
        for producer in (1, 2):
            log.append(
                produced(producer, turn, transactional=True, timestamp=NOW + turn), leader_epoch=epoch, now_ms=NOW
            )
        if turn % 3 == 2:
            end(log, 1, commit=turn == 5)
            end(log, 2, commit=turn != 5)
    return log


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Such a log, closed."""
    log = written(tmp_path_factory.mktemp("whole") / "t-0")
    log.close()
    kinds = {suffix for path in log.directory.iterdir() for suffix in DERIVED if path.name.endswith(suffix)}
    assert kinds == {*DERIVED}
    assert faults(log.directory) == []
    return log.directory


def derived_flips(folder: Path) -> Iterator[tuple[Path, int, int]]:
    every = [(path, position, bit) for path, position, bit in flips(folder) if path.name.endswith(DERIVED)]
    assert FLIPS == "all" or len(every) >= 3 * len(DERIVED)
    yield from every


def sizes(path: Path) -> list[int]:
    """Return positions to truncate a file at: all of a small file, else a sample, mostly at the ends of entries."""
    size = path.stat().st_size
    entry = {".index": OFFSET_ENTRY.size, ".timeindex": TIME_ENTRY.size}.get(path.suffix, 1)
    bounds = range(0, size, entry)
    chance = random.Random(path.name)
    return sorted({0, *chance.sample(bounds, min(len(bounds), 5)), *chance.sample(range(size), min(size, 2))})


def must_be_reported(path: Path, size: int) -> bool:
    """True if a lost end must be reported. A shorter index costs only time, and that of the last segment may be
    incomplete.
    """
    if path.suffix == ".index":
        return size % OFFSET_ENTRY.size > 0
    last = path.stem == max(log.stem for log in path.parent.glob("*.log"))
    return path.suffix != ".timeindex" or not last or size % TIME_ENTRY.size > 0


def headers(folder: Path) -> list[BatchHeader]:
    return [header for path in sorted(folder.glob("*.log")) for _, header in iter_headers(path.read_bytes())]


def is_of_no_consequence(whole: Path, folder: Path, path: Path) -> bool:
    """True if the file has its old content, or equally valid index entries: a search then starts no later than it must."""
    before, now = path.read_bytes(), (folder / path.name).read_bytes()
    base = int(path.stem) if path.stem.isdigit() else 0
    batches = headers(whole)
    if path.suffix == ".index":
        pairs = list(zip(OFFSET_ENTRY.iter_unpack(before), OFFSET_ENTRY.iter_unpack(now), strict=True))
        ((was, is_now),) = [pair for pair in pairs if pair[0] != pair[1]]
        lasts = {header.last_offset for header in batches}
        return bool(was[1] == is_now[1] and is_now[0] > was[0] and base + is_now[0] in lasts)
    if path.suffix == ".timeindex":
        times = list(zip(TIME_ENTRY.iter_unpack(before), TIME_ENTRY.iter_unpack(now), strict=True))
        ((was, is_now),) = [pair for pair in times if pair[0] != pair[1]]
        holds = [each for each in batches if each.base_offset <= base + was[1] <= each.last_offset]
        return bool(was[0] == is_now[0] and holds[0].base_offset <= base + is_now[1] <= holds[0].last_offset)
    return before.decode("utf-8", "replace").split() == now.decode("utf-8", "replace").split()


def test_verify_reports_every_derived_file_with_a_wrong_bit(whole: Path, tmp_path: Path) -> None:
    harmless = 0
    for path, position, bit in derived_flips(whole):
        folder = flipped(whole, tmp_path / "t-0", path, position, bit)
        found = faults(folder)
        if not found:
            assert is_of_no_consequence(whole, folder, path), (path.name, position, bit)
            harmless += 1
            continue
        assert {fault.file.name for fault in found} == {path.name}, (path.name, position, bit)
        assert all("; a broker " in fault.reason for fault in found), str(found[0])
    assert harmless < 200


def times(log: Log) -> Any:
    found = [log.offset_for_timestamp(timestamp) for timestamp in range(NOW - 5, NOW + 8)]
    return found, log.max_timestamp()


def known(log: Log) -> Any:
    """Files other than batches that are served only after verification."""
    producers = {
        id_: (entry.epoch, [each[:3] for each in entry.batches], entry.transaction_start)
        for id_, entry in log.producers.entries.items()
    }
    aborted = [
        each[:3] for each in log.find_aborted(0, 0, log.end_offset)
    ]  # a lower stable offset costs a longer search
    return times(log), log.epochs.entries, producers, aborted, log.last_stable_offset


@pytest.mark.parametrize("clean", [True, False])
def test_a_derived_file_in_which_a_bit_is_wrong_is_never_believed(whole: Path, tmp_path: Path, clean: bool) -> None:
    log = open_log(copied(whole, tmp_path / "true" / "t-0"), SMALL, clean=True)
    true = known(log), truth(log, committed=True), truth(log, committed=False)
    point = log.end_offset if clean else 0
    for path, position, bit in derived_flips(whole):
        folder = flipped(whole, tmp_path / "t-0", path, position, bit)
        again = open_log(folder, SMALL, clean=clean, recovery_point=point)
        served = known(again), truth(again, committed=True), truth(again, committed=False)
        assert served == true, (path.name, position, bit)


@pytest.mark.parametrize("clean", [True, False])
def test_a_derived_file_that_has_lost_its_end_is_never_believed(whole: Path, tmp_path: Path, clean: bool) -> None:
    log = open_log(copied(whole, tmp_path / "true" / "t-0"), SMALL, clean=True)
    true, point = known(log), log.end_offset
    for path in sorted(path for path in whole.iterdir() if path.name.endswith(DERIVED)):
        for size in sizes(path):
            folder = copied(whole, tmp_path / "t-0")
            (folder / path.name).write_bytes(path.read_bytes()[:size])
            reported = {fault.file.name for fault in faults(folder)}
            assert reported == ({path.name} if must_be_reported(path, size) else set()), (path.name, size)
            again = open_log(folder, SMALL, clean=clean, recovery_point=point)
            assert known(again) == true, (path.name, size)


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("indexed", [True, False])
@pytest.mark.parametrize(("leader", "moved"), [(0, 1), (1, -1), (1, 1), (2, -1), (2, 1000)])
def test_a_wrong_leader_epoch_start_is_rejected_despite_the_indexes(
    whole: Path, tmp_path: Path, leader: int, moved: int, indexed: bool, clean: bool
) -> None:
    folder = copied(whole, tmp_path / "t-0")
    log = open_log(folder, SMALL, clean=True)
    true, end = log.epochs.entries, log.end_offset
    rows = [(epoch, start + moved * (number == leader)) for number, (epoch, start) in enumerate(true)]
    write_rows(folder / "leader-epoch-checkpoint", rows)
    for path in [] if indexed else folder.glob("*.timeindex"):
        path.write_bytes(bytes(24))
    again = open_log(folder, SMALL, clean=clean, recovery_point=end)
    assert truth(again, committed=False) == truth(log, committed=False)
    assert again.epochs.entries == true


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("which", [0, 1])
def test_aborted_transactions_with_a_lost_file_below_the_recovery_point_stay_aborted(
    whole: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture, which: int, clean: bool
) -> None:
    folder = copied(whole, tmp_path / "t-0")
    log = open_log(folder, SMALL, clean=True)
    true, point = log.find_aborted(0, 0, log.end_offset), log.end_offset
    assert len(true) == 2
    log.close()
    path = sorted(folder.glob("*.txnindex"))[which]
    rows = path.read_bytes()
    path.unlink()
    for _ in range(2):
        log = open_log(folder, SMALL, clean=clean, recovery_point=point)
        assert log.find_aborted(0, 0, point) == true
        log.flush()
        log.close()
    assert caplog.text.count("says [], the log says [") == 1
    assert path.read_bytes() == rows
    assert faults(folder) == []


@pytest.mark.parametrize("clean", [True, False])
def test_every_segment_is_searched_if_the_list_of_aborted_transactions_is_unreadable(
    whole: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture, clean: bool
) -> None:
    folder = copied(whole, tmp_path / "t-0")
    log = open_log(folder, SMALL, clean=True)
    true, point = log.find_aborted(0, 0, log.end_offset), log.end_offset
    log.close()
    (folder / FILE_NAME).write_bytes(b"0")
    assert [fault.reason for fault in faults(folder)] == [
        f"{folder / FILE_NAME} does not begin with version 0; a broker asks every segment for its aborted transactions"
    ]
    sorted(folder.glob("*.txnindex"))[0].unlink()
    log = open_log(folder, SMALL, clean=clean, recovery_point=point)
    assert log.find_aborted(0, 0, point) == true
    assert "aborting-segments is damaged: every segment is asked" in caplog.text
    log.close()
    assert faults(folder) == []


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("asked", ["at once", "later"])
@pytest.mark.parametrize("left", [".log", ".log .timeindex .snapshot"])
def test_aborted_transactions_stay_aborted_after_the_loss_of_indexes(
    whole: Path, tmp_path: Path, left: str, asked: str, clean: bool
) -> None:
    folder = copied(whole, tmp_path / "t-0")
    log = open_log(folder, SMALL, clean=True)
    true, point = log.find_aborted(0, 0, log.end_offset), log.end_offset
    log.close()
    for path in folder.iterdir():
        if path.suffix not in left.split():
            path.unlink()
    if asked == "later":  # After the others were rebuilt, only the manifest shows that one is missing.
        log = open_log(folder, SMALL, clean=clean, recovery_point=point)
        for segment in log.segments:
            assert segment.entry_before(segment.base_offset)
        log.flush()
        log.close()
        assert len(list(folder.glob("*.index"))) == len(log.segments)
    for _ in range(2):
        log = open_log(folder, SMALL, clean=clean, recovery_point=point)
        assert log.find_aborted(0, 0, point) == true
        assert len(true) == 2
        log.flush()
        log.close()
    assert read_aborting(folder) == {int(path.stem) for path in folder.glob("*.txnindex")}
    assert faults(folder) == []


def test_aborted_transactions_of_another_brokers_log_are_recorded_when_read(whole: Path, tmp_path: Path) -> None:
    folder = copied(whole, tmp_path / "t-0")
    (folder / FILE_NAME).unlink()
    log = open_log(folder, SMALL, clean=True)
    true = log.find_aborted(0, 0, log.end_offset)
    log.close()
    assert read_aborting(folder) == {int(path.stem) for path in folder.glob("*.txnindex")}
    assert len(true) == 2


def test_a_recorded_segment_without_aborted_transactions_is_removed_from_the_list(tmp_path: Path) -> None:
    log = open_log(tmp_path / "t-0")
    send(log, 3, 0, transactional=True)
    end(log, 3, commit=True)
    log.close()
    record_aborting(log.directory, 0, aborts=True, sync=False)
    log = open_log(log.directory, clean=True)
    assert log.find_aborted(0, 0, log.end_offset) == []
    log.close()
    assert read_aborting(log.directory) == set()


def test_segments_without_aborted_transactions_and_deleted_ones_are_not_recorded(tmp_path: Path) -> None:
    log = open_log(tmp_path / "t-0", SMALL)

    def aborting() -> set[int]:
        log.flush()
        assert read_aborting(log.directory) == {int(path.stem) for path in log.directory.glob("*.txnindex")}
        return read_aborting(log.directory)

    assert aborting() == set()
    for sequence, commit in enumerate([True, False, False]):
        first = log.end_offset
        send(log, 3, sequence, transactional=True)
        end(log, 3, commit=commit)
        roll(log)
    assert len(aborting()) == 2
    log.advance_start(first)
    log.retain(NOW)
    send(log, 3, 3, transactional=True)
    end(log, 3, commit=False)
    assert aborting() == {first, log.segments[-1].base_offset}
    log.close()


def test_a_missing_aborted_transaction_is_reported_with_its_file(whole: Path, tmp_path: Path) -> None:
    folder = copied(whole, tmp_path / "t-0")
    path = next(path for path in sorted(folder.glob("*.txnindex")))
    rows = path.read_bytes()
    path.write_bytes(rows[ABORTED.size :])
    (fault,) = faults(folder)
    assert (fault.file, "was aborted at offset" in fault.reason, "is missing" in fault.reason) == (path, True, True)
    assert "a broker rebuilds the file" in fault.reason
    path.unlink()
    assert {fault.file for fault in faults(folder)} == {path}


def test_a_missing_leader_epoch_is_reported(whole: Path, tmp_path: Path) -> None:
    folder = copied(whole, tmp_path / "t-0")
    path = folder / "leader-epoch-checkpoint"
    rows = path.read_text().splitlines()
    assert rows[1] == "3"
    for gone in range(3):
        left = rows[2 : 2 + gone] + rows[3 + gone :]
        path.write_text("\n".join(["0", "2", *left, ""]))
        (fault,) = faults(folder)
        assert fault.file == path
        assert f"are of leader epoch {1 + gone}" in fault.reason
        assert "a broker takes the epochs from the batches" in fault.reason


def test_unflushed_files_of_a_log_may_be_missing(whole: Path, tmp_path: Path) -> None:
    folder = copied(whole, tmp_path / "t-0")
    rows = (folder / "leader-epoch-checkpoint").read_text().splitlines()
    (folder / "leader-epoch-checkpoint").write_text("\n".join(["0", "2", *rows[2:4], ""]))
    max(folder.glob("*.txnindex")).unlink()
    begin = int(rows[4].split()[1])

    def found(flushed: int) -> int:
        check = PartitionCheck(folder, live=False, flushed=flushed)
        check.run(lambda size: None)
        return len(check.faults)

    assert found(begin) == 0
    assert found(10**6) >= 2


@pytest.mark.parametrize("field", ["epoch", "sequence", "offset", "transaction", "gone"])
def test_an_intact_snapshot_that_contradicts_the_batches_is_reported(tmp_path: Path, field: str) -> None:
    log = open_log(tmp_path / "t-0")
    for sequence in range(3):
        send(log, 7, sequence, transactional=True)
    log.close()
    (entry,) = log.producers.entries.values()
    last = entry.batches[-1]
    if field == "epoch":
        entry.epoch = 1
    elif field == "sequence":
        entry.batches[-1] = last._replace(last_sequence=9)
    elif field == "offset":
        entry.batches[-1] = last._replace(last_offset=1)
    elif field == "transaction":
        entry.transaction_start = -1
    path = snapshot_path(log.directory, 3)
    assert read_snapshot(log.directory, 3, NOW) is not None
    assert faults(log.directory) == []
    path.write_bytes(encode_snapshot([] if field == "gone" else [entry]))
    (fault,) = faults(log.directory)
    assert fault.file == path
    assert "producer 7" in fault.reason
    assert "delete the file while no broker runs" in fault.reason


KEYED = LogConfig(
    cleanup_policy=("compact", "delete"), segment_bytes=1200, index_interval_bytes=100, retention_bytes=4000
)


def history(log: Log, chance: random.Random) -> None:
    """Records with keys of several producers, the ends of transactions, compaction and retention in between."""
    entries = log.producers.entries
    sequences = {id_: entries[id_].last_sequence + 1 if id_ in entries else 0 for id_ in range(1, 5)}
    cleaned, epoch = 0, log.epochs.latest() + 1
    for _ in range(chance.randrange(20, 90)):
        producer, what = chance.choice(list(sequences)), chance.random()
        transactional = producer > 2
        pairs = [(b"%d" % chance.randrange(4), b"x" * chance.randrange(50)) for _ in range(chance.randrange(1, 4))]
        if what < 0.8:
            data = keyed(
                pairs, producer_id=producer, producer_epoch=0, base_sequence=sequences[producer],
                transactional=transactional, timestamp=NOW + chance.randrange(9),
            )  # fmt: skip
            log.append(data, leader_epoch=epoch, now_ms=NOW)
            sequences[producer] += len(pairs)
        elif what < 0.9 and transactional:
            marker = EndMarker(chance.choice([ControlType.COMMIT, ControlType.ABORT]), 0)
            data = encode_end_marker(producer, 0, marker, NOW)
            log.append(data, leader_epoch=epoch, now_ms=NOW, origin=Origin.COORDINATOR)
        elif what < 0.94:
            roll(log)
            cleaned = compact(log, cleaned) if chance.random() < 0.5 else cleaned
        elif what < 0.96:
            log.retain(NOW)
        else:
            epoch += 1


@settings(deadline=None, max_examples=40)
@given(seed=st.integers(0, 2**32))
def test_an_intact_log_has_no_reports(tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    chance = random.Random(seed)
    folder = tmp_path_factory.mktemp("log") / "t-0"
    for _ in range(2):
        log = open_log(folder, KEYED, clean=True)
        history(log, chance)
        log.close()
        assert [str(fault) for fault in faults(folder)] == []
    history(open_log(folder, KEYED, clean=True), chance)
    open_log(folder, KEYED, recovery_point=0).close()  # after a crash
    assert [str(fault) for fault in faults(folder)] == []
