"""Queries of one classic group; its events are in the transcripts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ottla.coordination.groups.classic.group import ClassicGroup, ClassicGroupState, ClassicMember, format_members


def member(name: str, rebalance_timeout_ms: int = 60_000) -> ClassicMember:
    return ClassicMember(name, None, "app", "/h", rebalance_timeout_ms, 10_000, (("range", b""),))


NOBODY = ClassicGroup("g")
TWO = NOBODY.with_member(member("a")).with_member(member("b", 90_500)).changed(protocol_type="consumer")


def test_a_group_is_blank_while_nothing_is_known_of_it() -> None:
    assert NOBODY.is_blank
    assert not NOBODY.with_member(member("a")).is_blank
    assert not NOBODY.changed(generation=1).is_blank
    assert not NOBODY.changed(pending=frozenset({"a"})).is_blank
    assert not NOBODY.changed(protocol_type="consumer").is_blank


def test_a_removed_member_is_not_waited_for() -> None:
    group = TWO.changed(pending=frozenset({"c", "d"}), pending_sync=frozenset({"a", "b"})).without("a", "c")
    assert (list(group.members), group.leader) == (["b"], "b")
    assert group.pending == {"d"}
    assert group.pending_sync == {"b"}


def test_a_static_member_is_waited_for_under_its_new_id() -> None:
    group = TWO.changed(pending_sync=frozenset({"a", "b"})).replace_static_member("a", member("a2"))
    assert (list(group.members), group.leader) == (["a2", "b"], "a2")
    assert group.pending_sync == {"a2", "b"}
    assert TWO.changed(pending_sync=frozenset({"b"})).replace_static_member("a", member("a2")).pending_sync == {"b"}


def test_a_rebalance_may_take_the_longest_rebalance_timeout() -> None:
    assert TWO.rebalance_timeout == 90.5
    assert NOBODY.rebalance_timeout == 0


@pytest.mark.parametrize(
    ("protocol_type", "names", "fits"),
    [("consumer", {"range"}, True), ("", {"range"}, False), ("consumer", set(), False)],
)
def test_an_empty_group_accepts_a_member_with_a_type_and_a_protocol(
    protocol_type: str, names: set[str], fits: bool
) -> None:
    assert NOBODY.is_supporting(protocol_type, names) is fits


def test_a_consumer_group_with_an_unreadable_subscription_may_read_any_topic() -> None:
    assert TWO.can_read("t")
    assert not TWO.changed(protocol_type="connect").can_read("t")
    assert TWO.changed(topics=frozenset({"t"})).can_read("t")
    assert not TWO.changed(topics=frozenset({"t"})).can_read("u")


def test_the_time_of_the_last_state_change_is_unknown_at_first() -> None:
    assert NOBODY.changed_ms == -1


@pytest.mark.parametrize(
    "broken",
    [
        TWO,
        TWO.changed(state=ClassicGroupState.PREPARING_REBALANCE, pending_sync=frozenset({"a"})),
        TWO.changed(state=ClassicGroupState.STABLE, protocol_name="sticky"),
        TWO.changed(state=ClassicGroupState.STABLE, protocol_name="range", initial_delay_left=1.0),
        TWO.with_member(replace(member("a"), join_ticket=1)).changed(
            state=ClassicGroupState.STABLE, protocol_name="range"
        ),
        NOBODY.changed(state=ClassicGroupState.DEAD),
    ],
)
def test_an_inconsistent_group_is_detected(broken: ClassicGroup) -> None:
    with pytest.raises(AssertionError):
        broken.check()


def test_a_member_waits_in_a_join_or_in_a_sync() -> None:
    assert not member("a").is_waiting
    assert replace(member("a"), join_ticket=1).is_waiting
    assert replace(member("a"), sync_ticket=1).is_waiting


def test_parsed_metadata_is_not_part_of_a_members_identity() -> None:
    asked = member("a")
    asked.subscription("range")
    assert asked == member("a")
    assert "topics" not in repr(asked)


def test_ten_members_are_listed_and_more_are_counted() -> None:
    names = [f"m{i}" for i in range(11)]
    assert format_members(names[:10]) == "m0, m1, m2, m3, m4, m5, m6, m7, m8, m9"
    assert format_members(names) == "m0, m1, m2, m3, m4, m5, m6, m7, m8, m9 and 1 more"
