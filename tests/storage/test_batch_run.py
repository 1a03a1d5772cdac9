"""Runs of batches, compiled and plain, on the same bytes; and logs taken up by runs and batch by batch."""

from __future__ import annotations

import random
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ottla.storage.batches.batch_run as compiled
from ottla.model import Buffer
from ottla.records.batch import iter_headers, stamp_all
from ottla.storage.batches.verified_walk import walk_by_checksums
from tests.plain import is_compiled, plain
from tests.storage.batches import NOW, batch, open_log
from tests.storage.drawn import INTERVAL, SMALL, state, write
from tests.storage.producing import produced

FORMS = {"compiled": compiled, "plain": plain("ottla.storage.batches.batch_run")}
forms = pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
FAR = 2**62


def row(*batches: Buffer, base_offset: int = 0, leader_epoch: int = 3) -> bytearray:
    """Batches as stored in a log."""
    data = bytearray(b"".join(batches))
    headers = [header for _, header in iter_headers(data)]
    stamp_all(data, headers, base_offset, leader_epoch)
    return data


def walked(form: ModuleType, data: Buffer, *, epoch: int = 3, expected: int = 0, below: int = FAR) -> Any:
    """Everything that a run returns for some bytes."""
    run = form.BatchRun(INTERVAL)
    run.epoch = epoch
    found = run.walk(memoryview(data), 1000, expected, below)
    return bool(found), found and (
        run.stop, run.next_offset, run.entries, run.producers,
        run.max_timestamp, run.max_timestamp_offset, run.bytes_since_entry,
    )  # fmt: skip


def test_the_loop_that_runs_is_the_compiled_one() -> None:
    assert is_compiled(compiled)
    assert not is_compiled(FORMS["plain"])


@forms
def test_a_run_ends_with_its_bytes_and_returns_the_index_entries(form: ModuleType) -> None:
    data = row(*[batch(b"x" * 60, b"y", timestamps=[NOW + number] * 2) for number in range(10)])
    size = len(data) // 10
    found, (stop, next_offset, entries, producers, timestamp, offset, since) = walked(form, data)
    assert (found, stop, next_offset, producers) == (True, 1000 + len(data), 20, [])
    assert (timestamp, offset) == (NOW + 9, 19)
    assert [entry[:2] for entry in entries] == [
        (5, 1000 + 2 * size),
        (9, 1000 + 4 * size),
        (13, 1000 + 6 * size),
        (17, 1000 + 8 * size),
    ]
    assert entries[0][2:] == (NOW + 2, 5)
    assert since == 2 * size


@forms
@pytest.mark.parametrize(
    "other",
    [
        row(batch(b"a"), base_offset=3),  # behind a gap
        row(batch(b"a"), base_offset=1),  # before its turn
        row(batch(b"a"), base_offset=2, leader_epoch=4),
        row(produced(7, 0, transactional=True), base_offset=2),
        bytearray(61),
        row(batch(b"a"), base_offset=2)[:-1],
    ],
)
def test_a_batch_of_another_kind_ends_a_run(form: ModuleType, other: bytearray) -> None:
    first = row(batch(b"a", b"b"))
    assert walked(form, first + other)[1][:2] == (1000 + len(first), 2)
    assert walked(form, other) == (False, False)


@forms
def test_a_run_ends_before_the_base_offset_of_the_next_segment(form: ModuleType) -> None:
    data = row(batch(b"a"), batch(b"b", b"c"), batch(b"d"))
    assert walked(form, data, below=3)[1][1] == 3
    assert walked(form, data, below=2)[1][1] == 1
    assert walked(form, data, below=0)[0] is False


@forms
def test_no_run_starts_before_the_leader_epoch_is_known(form: ModuleType) -> None:
    run = form.BatchRun(INTERVAL)
    assert not run.walk(memoryview(row(batch(b"a"), leader_epoch=-2)), 0, 0, FAR)


@forms
def test_the_latest_five_batches_of_each_producer_are_kept(form: ModuleType) -> None:
    data = row(*[produced(1 + number % 2, number // 2) for number in range(16)])
    kept = walked(form, data)[1][3]
    assert [(header.producer_id, header.base_sequence) for header in kept] == [
        *((1, sequence) for sequence in range(3, 8)),
        *((2, sequence) for sequence in range(3, 8)),
    ]


@forms
def test_a_new_producer_epoch_ends_a_run(form: ModuleType) -> None:
    data = row(produced(1, 0), produced(2, 0), produced(1, 0, epoch=1), produced(1, 1, epoch=1))
    assert walked(form, data)[1][1] == 2


@given(st.integers(0, 2**32))
def test_both_forms_report_the_same_errors_for_damaged_bytes(seed: int) -> None:
    chance = random.Random(seed)
    kinds = (lambda: batch(b"x" * chance.randrange(90)), lambda: bytearray(produced(chance.randrange(3), 0)))
    parts = [chance.choice(kinds)() for _ in range(6)]
    data = row(*parts)
    for _ in range(chance.randrange(4)):
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    data = data[: chance.choice([len(data), chance.randrange(len(data))])]
    epoch, expected = chance.choice([3, 3, 0]), chance.choice([0, 0, 1, 2**62])
    plainly, compiledly = (walked(form, data, epoch=epoch, expected=expected) for form in FORMS.values())
    assert plainly == compiledly


@given(data=st.binary(max_size=200))
def test_arbitrary_bytes_are_scanned_safely(data: bytes) -> None:
    for form in FORMS.values():
        assert walked(form, data)[0] in (False, True)


@settings(deadline=None, max_examples=40)
@given(seed=st.integers(0, 2**32))
def test_a_log_loaded_by_runs_equals_the_log_loaded_batch_by_batch(
    tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    folder = tmp_path_factory.mktemp("log") / "t-0"
    write(open_log(folder, SMALL), random.Random(seed))
    point = random.Random(seed).choice([0, 5, 20])
    again = state(open_log(folder, SMALL, recovery_point=point))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "ottla.storage.recovery.log_loader.walk_by_checksums", lambda *arguments: walk_by_checksums(*arguments[:5])
        )
        assert state(open_log(folder, SMALL, recovery_point=point)) == again
