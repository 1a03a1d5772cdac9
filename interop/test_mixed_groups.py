"""Everybody's consumers share one group on our broker, while members die, freeze and come, and the broker is killed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from interop import node
from interop.mixed_group import NAMES, Crowd, told_in, until
from rivals.apache_kafka import fetch


@pytest.fixture
def crowd(tmp_path: Path) -> Iterator[Crowd]:
    fetch()
    crowd = Crowd(tmp_path, NAMES[:-1] if node.missing() else NAMES)
    yield crowd
    crowd.close()


def test_nothing_is_missed_and_nothing_committed_is_seen_again_in_a_group_of_all_clients(crowd: Crowd) -> None:
    until(crowd.shared, crowd.state)
    dead, frozen = crowd.members[0], crowd.members[1]
    crowd.kill(dead)
    until(crowd.shared, crowd.state)
    frozen.freeze()
    crowd.members.remove(frozen)
    until(crowd.shared, crowd.state)
    frozen.thaw()
    crowd.members.append(frozen)
    crowd.join(dead.client)
    until(crowd.shared, crowd.state)
    crowd.kill_broker()
    crowd.finish()
    until(crowd.shared, crowd.state)
    assert crowd.missed() == []
    assert crowd.seen_after_commit() == []
    if why := node.missing():
        pytest.skip(f"all this held, but {why}")


def test_what_a_client_writes_to_its_log_is_not_taken_for_what_it_tells() -> None:
    assert told_in("12 owned 1 7\n", "java") == (12, "owned", (1, 7), "java")
    assert told_in("12 owned\n", "java") == (12, "owned", (), "java")
    assert told_in("2026-11-21T15:35:46.465112649Z main ERROR [Consumer] Offset commit failed on 6\n", "java") is None
