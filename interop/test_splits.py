"""Real network partitions in clusters with clients of three kinds: the logs agree with the responses of the brokers.

For longer runs with more details use `python -m interop.splits`.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from interop.splits.faults import KINDS, SPLITS, Fault, drawn
from interop.splits.ledger import Tally, skipped, tally
from interop.splits.network import APART, CLIENTS, missing
from interop.splits.nodes import CONSTELLATIONS
from rivals.apache_kafka import ROOT, fetch

LONGEST_SECONDS = 1800
NODES = (1, 2, 3)


def test_a_ledger_counts_missing_repeated_and_reordered_rows() -> None:
    rows = [(0, "a"), (2, "b"), (1, "c"), (1, "d"), (3, "e")]
    assert tally(rows, {0, 1, 2, 4}, {"e"}) == Tally(missing=1, twice=1, out_of_order=1, aborted=1)


def test_a_ledger_accepts_unacknowledged_rows() -> None:
    assert tally([(0, "a"), (1, "b")], {0}) == tally([(0, "a")], {0}) == Tally()


def test_a_reader_that_reads_again_has_skipped_nothing() -> None:
    assert skipped([0, 1, 2, 1, 2, 3]) == 0
    assert skipped([0, 2, 3]) == 1


@pytest.mark.parametrize("kind", SPLITS)
def test_each_partition_fault_separates_two_different_hosts(kind: str) -> None:
    cuts = Fault(kind, 2, 3, 1).cuts(NODES)
    assert cuts
    assert all(one != other for one, other in cuts)
    assert (CLIENTS in {each for cut in cuts for each in cut}) == (kind in ("gone", "unheard"))


def test_a_seed_draws_the_same_faults_again() -> None:
    first, again, other = (list(drawn(seed, 20, NODES, (3, 8), list(KINDS))) for seed in (7, 7, 8))
    assert first == again != other
    assert [each.seconds for each in first[:3]] == [3, 8, 3]
    assert all(each.node != each.other for each in first)


def test_a_run_ends_on_a_signal_although_it_has_pid_1() -> None:
    if why := missing():
        pytest.skip(why)
    waits = "from interop.splits.run import end_at_signals; end_at_signals(); print('ready', flush=True); input()"
    command = [*APART, sys.executable, "-c", waits]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT) as outside:
        assert outside.stdout is not None
        assert outside.stdout.readline() == b"ready\n"
        (first,) = Path(f"/proc/{outside.pid}/task/{outside.pid}/children").read_text().split()
        os.kill(int(first), signal.SIGTERM)
        assert outside.wait(60) == 128 + signal.SIGTERM


@pytest.mark.long
@pytest.mark.behaviour("B4", "P3")
@pytest.mark.parametrize("constellation", CONSTELLATIONS)
def test_no_record_is_lost_or_repeated_during_network_partitions(constellation: str) -> None:
    if why := missing():
        pytest.skip(why)
    fetch()
    how = ["--seed", "7", "--count", "8", "--kinds", ",".join(KINDS)]
    command = [sys.executable, "-m", "interop.splits", constellation, *how]
    run = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=LONGEST_SECONDS, check=False)
    assert run.returncode == 0, run.stdout[-8000:] + run.stderr[-2000:]
