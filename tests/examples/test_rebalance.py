"""The story of a group, played quickly."""

from __future__ import annotations

from pathlib import Path

import pytest

from examples.rebalance.happening import UUID, Happening, Span, lines, spans
from examples.rebalance.story import Told, play_both
from ottla.client.consumer.events import Assigned, Left, Lost, Revoked
from ottla.coordination.groups.classic.notes import InstanceReplaced, RebalanceStarted
from ottla.model import TopicPartition

pytestmark = pytest.mark.xdist_group("story")  # what they share is made once


@pytest.fixture(scope="module")
def stories() -> list[Told]:
    return play_both(max_poll_interval_ms=500)


def between(story: Told, start: str, end: str) -> list[Happening]:
    """The timeline of a rebalance."""
    texts = [str(each.event) for each in story.happenings]
    first, last = (next(n for n, text in enumerate(texts) if text.startswith(step)) for step in (start, end))
    return story.happenings[first:last]


def rebalances(happenings: list[Happening]) -> list[str]:
    return [each.event.reason for each in happenings if isinstance(each.event, RebalanceStarted)]


def test_eager_members_give_everything_up_and_cooperative_ones_what_moves(stories: list[Told]) -> None:
    given_up = []
    for reported in stories:
        events = between(reported, "bert comes", "cleo comes")
        given_up.append([len(each.event.partitions) for each in events if isinstance(each.event, Revoked)])
    assert given_up == [[6], [3]]


def test_each_rebalance_has_its_cause(stories: list[Told]) -> None:
    eager, cooperative = (rebalances(between(reported, "bert comes", "cleo comes")) for reported in stories)
    assert len(eager) == 1
    assert eager[0].startswith("bert-")
    assert " joins" in eager[0]
    assert len(cooperative) == 2
    assert "[orders-3, orders-4, orders-5] were revoked for other members" in cooperative[1]


def test_a_static_member_restarts_without_a_rebalance(stories: list[Told]) -> None:
    for reported in stories:
        happenings = between(reported, "cleo restarts", "anna sleeps")
        assert rebalances(happenings) == []
        assert [each.event.instance for each in happenings if isinstance(each.event, InstanceReplaced)] == ["cleo-1"]


def test_a_member_suspended_too_long_is_removed_and_rejoins(stories: list[Told]) -> None:
    for reported in stories:
        asleep = between(reported, "anna sleeps", "anna wakes up")
        assert [each.who for each in asleep if isinstance(each.event, Left)] == ["anna"]
        assert any("LeaveGroup" in reason for reason in rebalances(asleep))
        awake = between(reported, "anna wakes up", "bert goes")
        assert [each.who for each in awake if isinstance(each.event, Lost)] == ["anna"]


def test_no_partition_has_two_owners_at_a_time(stories: list[Told]) -> None:
    for reported in stories:
        for one, next_one in zip(spans(reported.happenings), spans(reported.happenings)[1:], strict=False):
            assert one.partition != next_one.partition or in_turn(one, next_one)


def in_turn(one: Span, other: Span) -> bool:
    """True if one ends before the other starts, within the resolution of milliseconds."""
    first, second = sorted((one, other), key=lambda span: span.start)
    return first.end <= second.start + 0.001


def test_the_time_line_is_for_people(stories: list[Told]) -> None:
    reported = lines(stories[0].happenings)
    assert reported[0] == "\n  0.000  anna comes, and has everything"
    assert any(line.endswith("anna     assigned orders 0,1,2,3,4,5, new: all") for line in reported)
    assert not [line for line in reported if UUID.search(line)]


def test_the_picture_is_drawn(stories: list[Told], tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    from examples.rebalance.picture import draw

    draw(stories, tmp_path / "story.svg")
    assert (tmp_path / "story.svg").read_text().count("<path") > 100


def test_spans_end_where_partitions_are_given_up() -> None:
    zero, one = TopicPartition("t", 0), TopicPartition("t", 1)
    reported = [
        Happening(1000, "anna", Assigned((zero, one), (zero, one))),
        Happening(2000, "anna", Revoked((one,))),
        Happening(2500, "bert", Assigned((one,), (one,))),
        Happening(3000, "anna", Left("")),
        Happening(4000, "anna", Lost((zero,))),
    ]
    assert spans(reported) == [(0, "anna", 0, 2), (1, "anna", 0, 1), (1, "bert", 1.5, 3)]
