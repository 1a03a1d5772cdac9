"""The flights classified, a few of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from examples.process_flights.__main__ import main
from examples.process_flights.classify import punctuality

pytestmark = pytest.mark.heavy


def test_each_flight_is_classified_once_though_workers_are_killed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    picture = tmp_path / "flights.png"
    assert main(["--flights", "3000", "--picture", str(picture)]) == 0
    stdout = capsys.readouterr().out
    assert "3,000 flights classified, each once" in stdout
    assert "4 times a worker was killed; 1 record was no flight" in stdout
    assert picture.stat().st_size > 10_000


def test_classes_are_counted_per_minute() -> None:
    delays = [-5, 0, 14, 15, 59, 60, 1301, None]
    classes = ["early", "on time", "on time", "late", "late", "very late", "very late", "cancelled"]
    assert [punctuality(delay) for delay in delays] == classes
