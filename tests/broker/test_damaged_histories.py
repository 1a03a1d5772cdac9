"""The search for lost records in damaged clusters finds them."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from ottla.model import TopicPartition
from tests.broker.random_damage import KINDS, Fault, Read, Records, verdict

PLACE = TopicPartition("t", 0)
WRITTEN: Records = [(0, b"a"), (1, b"b"), (3, b"c")]


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (Read(WRITTEN), []),
        (Read(WRITTEN[:2]), ["LOST t-0: 1, the first (3, b'c')"]),
        (Read(WRITTEN[:2], "nothing came any more"), ["LOST t-0: 1, the first (3, b'c')"]),
        (Read(WRITTEN[:1], "damaged"), ["reported of t-0: damaged"]),
        (Read([*WRITTEN, WRITTEN[0]]), ["LOST t-0: 4 records, of which 3 are different"]),
        (Read([*WRITTEN, (2, b"aborted")]), ["LOST t-0: 4 records, of which 4 are different, and [(2, b'aborted')]"]),
    ],
)
def test_missing_or_unexpected_records_are_a_loss_unless_they_were_reported(found: Read, said: list[str]) -> None:
    spoken = list(verdict({PLACE: WRITTEN}, {PLACE: found}))
    assert len(spoken) == len(said)
    assert all(line.startswith(start) for line, start in zip(spoken, said, strict=True))


@pytest.mark.parametrize("kind", KINDS)
def test_each_fault_changes_or_removes_the_file(tmp_path: Path, kind: str) -> None:
    (file := tmp_path / "file").write_bytes(b"twenty bytes of a file")
    Fault(file, kind, 7).happen(Random(1))
    assert not file.exists() or file.read_bytes() != b"twenty bytes of a file"
