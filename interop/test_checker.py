"""Rounds of the checker with librdkafka's clients, longer than those of `make test`.

`python -m tests.checker` runs more.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.checker.generator import planned
from tests.checker.history import Event
from tests.checker.play import play
from tests.checker.verdict import verdict
from tests.checker.victim import Victim

SEEDS = (500, 501, 502)


def test_no_record_is_lost_or_repeated_or_read_too_early_while_the_broker_is_killed(tmp_path: Path) -> None:
    def played(seed: int) -> list[Event]:
        with Victim(tmp_path / str(seed)) as victim:
            return play(planned(seed, crashes=4), victim)

    with ThreadPoolExecutor(len(SEEDS)) as pool:
        assert [verdict(events) for events in pool.map(played, SEEDS)] == [[]] * len(SEEDS)
