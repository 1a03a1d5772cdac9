"""Damage that `ottla log repair` finds in addition to wrong CRCs."""

from __future__ import annotations

from pathlib import Path

from ottla.records.batch import iter_headers
from ottla.storage.repair import plan
from tests.storage.batches import NOW, append, bases_from, batch, open_log
from tests.storage.producing import end, send


def flip(path: Path, number: int, place: int) -> None:
    """Turn a bit of a batch around."""
    data = bytearray(path.read_bytes())
    data[list(iter_headers(data))[number][0] + place] ^= 4
    path.write_bytes(data)


def test_a_batch_with_an_impossible_leader_epoch_is_set_aside(tmp_path: Path) -> None:
    log = open_log(tmp_path / "t-0")
    for epoch in (1, 1, 1, 2, 2):
        log.append(batch(b"a"), leader_epoch=epoch, now_ms=NOW)
    log.close()
    assert list(plan(tmp_path, [], {})) == []
    flip(log.segments[0].path, 1, 15)
    (found,) = plan(tmp_path, [], {})
    assert "offsets 1 to 1" in found.fault
    assert "leader epoch 5" in found.fault
    found.execute()
    assert list(plan(tmp_path, [], {})) == []
    again = open_log(tmp_path / "t-0", clean=True, recovery_point=5)
    assert bases_from(again, 0) == [0, 2, 3, 4]


def test_a_transaction_that_may_have_ended_in_damage_is_named_before_anything_is_changed(tmp_path: Path) -> None:
    log = open_log(tmp_path / "t-0")
    append(log, b"before")
    send(log, 7, 0, transactional=True)
    end(log, 7, commit=True)
    send(log, 7, 1, transactional=True)
    end(log, 7, commit=False)
    log.close()
    flip(log.segments[0].path, 2, 70)
    (found,) = plan(tmp_path, [], {})
    assert "offsets 2 to 2" in found.fault
    assert "the transaction of producer 7 from offset 1 on may have ended there" in found.fault
