"""Foreign transactional clients on our broker: lost and repeated records are counted while both sides are killed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from interop.exactly_once import NAMES, Stage
from interop.served import OneBroker
from rivals.apache_kafka import fetch

RECORDS = 6000


@pytest.fixture(params=NAMES)
def stage(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Stage]:
    fetch()
    stage = Stage(OneBroker(tmp_path), request.param, RECORDS)
    yield stage
    stage.close()


def test_records_of_a_foreign_processor_are_there_exactly_once_after_kills_on_both_sides(stage: Stage) -> None:
    for part, kill in enumerate((stage.kill_processor, stage.kill_broker, stage.kill_processor), 1):
        stage.until(lambda part=part: stage.committed() >= part * RECORDS // 5)  # type: ignore[misc]
        kill()
    stage.until(lambda: stage.committed() == RECORDS)
    tally = stage.tally()
    assert (tally.lost, tally.doubled, tally.out_of_order) == (0, 0, 0)
