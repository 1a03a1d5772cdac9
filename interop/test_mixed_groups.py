"""Everybody's consumers share one group on our broker, while members die, freeze and come, and the broker is killed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from interop import node
from interop.mixed_group import NAMES, NEWER, Crowd, told_in, until
from rivals.apache_kafka import fetch


@pytest.fixture
def crowd_of(tmp_path: Path) -> Iterator[Callable[..., Crowd]]:
    """Makes a group of such clients."""
    fetch()
    made: list[Crowd] = []

    def make(*clients: str) -> Crowd:
        made.append(Crowd(tmp_path, clients))
        return made[-1]

    yield make
    for crowd in made:
        crowd.close()


def test_nothing_is_missed_and_nothing_committed_is_seen_again_in_a_group_of_all_clients(
    crowd_of: Callable[..., Crowd],
) -> None:
    play(crowd_of(*(NAMES[:-1] if node.missing() else NAMES)))
    if why := node.missing():
        pytest.skip(f"all this held, but {why}")


def test_nor_in_one_of_all_that_speak_the_newer_protocol(crowd_of: Callable[..., Crowd]) -> None:
    play(crowd_of("ours_newer", *NEWER))


def test_nor_in_one_of_both_protocols(crowd_of: Callable[..., Crowd]) -> None:
    play(crowd_of("ours_newer", "ours", "java_newer", "confluent"))


def play(crowd: Crowd) -> None:
    """Members die, freeze and come, and the broker is killed."""
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


def test_what_a_client_writes_to_its_log_is_not_taken_for_what_it_tells() -> None:
    assert told_in("12 owned 1 7\n", "java") == (12, "owned", (1, 7), "java")
    assert told_in("12 owned\n", "java") == (12, "owned", (), "java")
    assert told_in("12 got 1", "java") is None
    assert told_in("2026-11-21T15:35:46.465112649Z main ERROR [Consumer] Offset commit failed on 6\n", "java") is None
