"""The distribution of tests among worker processes."""

from __future__ import annotations

import pytest

GROUP = """
import os, pytest

@pytest.mark.xdist_group("one")
@pytest.mark.parametrize("number", range(20))
def test_of_the_group(number):
    with open("processes.txt", "a") as file:
        print(os.getpid(), file=file)
"""


@pytest.mark.house
def test_tests_of_one_group_are_run_by_one_process(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(GROUP)
    pytester.runpytest_subprocess("-n", "2", "--dist", "loadgroup").assert_outcomes(passed=20)
    processes = (pytester.path / "processes.txt").read_text().split()
    assert len(processes) == 20
    assert len(set(processes)) == 1
