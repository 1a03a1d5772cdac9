"""The flights through three nodes, some of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from examples.cluster_flights.__main__ import main
from examples.cluster_flights.story import Story

pytestmark = pytest.mark.heavy


def test_each_flight_is_there_once_though_two_nodes_are_killed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    picture = tmp_path / "cluster.png"
    assert main(["--flights", "6000", "--per-second", "6000", "--picture", str(picture)]) == 0
    stdout = capsys.readouterr().out
    assert "6,000 flights sent, 0 refused, 0 missing, 0 more than once" in stdout
    assert stdout.count("kill −9 of node") == 4, "each as it happens, and what it cost"
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_the_longest_pause_is_reported_with_its_events() -> None:
    story = Story([0.5, 1.0, 1.5, 4.0, 4.1])
    assert story.longest_pause(1.2, 5.0) == 2.5
    assert story.longest_pause(4.05, 9.0) == pytest.approx(4.9)
