"""Consumers of all clients share one group on our broker, while members and the broker are killed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from interop import node
from interop.mixed_group import NAMES, NEWER, GroupUnderTest, parse_event, until
from rivals.apache_kafka import fetch


@pytest.fixture
def crowd_of(tmp_path: Path) -> Iterator[Callable[..., GroupUnderTest]]:
    """Return a function that creates a group with these clients."""
    fetch()
    made: list[GroupUnderTest] = []

    def make(*clients: str) -> GroupUnderTest:
        made.append(GroupUnderTest(tmp_path, clients))
        return made[-1]

    yield make
    for crowd in made:
        crowd.close()


def test_no_record_is_missed_and_no_committed_one_is_read_again_in_a_group_of_all_clients(
    crowd_of: Callable[..., GroupUnderTest],
) -> None:
    play(crowd_of(*(NAMES[:-1] if node.missing() else NAMES)))
    if why := node.missing():
        pytest.skip(f"all this held, but {why}")


def test_nor_in_a_group_of_all_clients_with_kip_848(crowd_of: Callable[..., GroupUnderTest]) -> None:
    play(crowd_of("ours_newer", *NEWER))


def test_nor_in_a_group_of_both_protocols(crowd_of: Callable[..., GroupUnderTest]) -> None:
    play(crowd_of("ours_newer", "ours", "java_newer", "confluent"))


def play(crowd: GroupUnderTest) -> None:
    """Let members join, pause and be killed, and kill the broker."""
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


def test_a_log_line_of_a_client_is_not_parsed_as_an_event() -> None:
    assert parse_event("12 owned 1 7\n", "java") == (12, "owned", (1, 7), "java")
    assert parse_event("12 owned\n", "java") == (12, "owned", (), "java")
    assert parse_event("12 got 1", "java") is None
    assert (
        parse_event("2026-11-21T15:35:46.465112649Z main ERROR [Consumer] Offset commit failed on 6\n", "java") is None
    )
