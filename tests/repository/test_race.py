"""The measurement code of the benchmarks."""

from __future__ import annotations

import os
import sys

import pytest
from rich.console import Console

from benchmarks.brokers import Running
from benchmarks.duel import duel
from benchmarks.race import Contender, Heat, cpu_seconds, race, resident_bytes, table

linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def test_contenders_take_turns_after_the_warm_up(capsys: pytest.CaptureFixture[str]) -> None:
    order: list[str] = []

    def work(name: str) -> int:
        order.append(name)
        return 1

    race("turns", [Contender("a", lambda: work("a")), Contender("b", lambda: work("b"))], rounds=2, warm=1)
    assert order == ["a", "b"] * 3
    assert "turns" in capsys.readouterr().out


def test_the_ratio_is_the_median_of_the_rounds_ratios_to_the_last_contender() -> None:
    ours = [Heat(100, 0.5, 0.25), Heat(300, 0.5, 0.25), Heat(1000, 0.5, 0.25)]
    theirs = [Heat(100, 1.0, 0.1), Heat(100, 1.0, 0.1), Heat(1000, 1.0, 0.1)]
    console = Console(width=120, record=True)
    console.print(table("race", [Contender("ours", int), Contender("theirs", int)], [ours, theirs], "records/s"))
    rows = [line for line in console.export_text().splitlines() if "│" in line]
    assert [cell.strip() for cell in rows[0].split("│")[1:-1]] == ["ours", "300", "1.00", "50%", "25%"]
    assert "100% (limit)" in rows[1]


def test_a_duel_has_a_ratio_to_each_rival_and_omits_undefined_ratios() -> None:
    found = {"ours": [1.0, 2.0, 30.0], "first": [2.0, 2.0, 2.0], "second": [0.0, 0.0, 0.0]}
    servers = [Running(name, "", 0) for name in found]
    (line,) = duel(servers, lambda server: {"s": found[server.name].pop(0)})
    assert line.values == [2.0, 2.0, 0.0]
    assert line.ratios[0] == 1.0
    assert line.ratios[1] != line.ratios[1], "nothing is no measure"


@linux
def test_processor_time_and_memory_are_read_from_the_kernels_accounting() -> None:
    before = cpu_seconds(os.getpid())
    assert sum(range(1_000_000)) > 0
    assert 0 <= before <= cpu_seconds(os.getpid())
    assert 1_000_000 < resident_bytes(os.getpid()) < 10_000_000_000
