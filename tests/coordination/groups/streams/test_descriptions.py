"""When a description of a topology is requested, and how much of it is stored (KIP-1331)."""

from __future__ import annotations

from ottla.coordination.groups.streams.descriptions import NO_DESCRIPTION, estimate_size
from ottla.protocol.messages.streams_group_topology_description_update import (
    TopologyDescription,
    TopologyDescriptionNode,
    TopologyDescriptionSubtopology,
)

DESCRIPTION = TopologyDescription([TopologyDescriptionSubtopology("0", [TopologyDescriptionNode("n", 1, ["in"])])])


def test_requests_in_vain_are_repeated_after_twice_the_time_up_to_an_hour() -> None:
    state, now, waits = NO_DESCRIPTION, 100.0, []
    for _ in range(9):
        assert state.is_due(1, now)
        state = state.request(1, now)
        waits.append(state.wait_seconds)
        assert not state.is_due(1, now + waits[-1] - 0.1)
        now += waits[-1]
    assert waits == [30.0, 60.0, 120.0, 240.0, 480.0, 960.0, 1920.0, 3600.0, 3600.0]


def test_another_epoch_is_requested_at_once() -> None:
    state = NO_DESCRIPTION.request(1, 0.0).request(1, 30.0)
    assert not state.is_due(1, 31.0)
    assert state.is_due(2, 31.0)
    assert state.request(2, 31.0).wait_seconds == 30.0


def test_a_stored_or_refused_epoch_is_not_requested() -> None:
    stored = NO_DESCRIPTION.request(1, 0.0).store(1, DESCRIPTION, 10)
    refused = stored.refuse(2)
    assert not stored.is_due(1, 1e9)
    assert stored.is_due(2, 0.0)
    assert not refused.is_due(2, 1e9)
    assert refused.stored == stored.stored


def test_the_size_grows_with_each_name() -> None:
    longer = TopologyDescription(
        [TopologyDescriptionSubtopology("0", [TopologyDescriptionNode("n", 1, ["in", "x" * 9])])]
    )
    assert estimate_size(longer) > estimate_size(DESCRIPTION) + 9
