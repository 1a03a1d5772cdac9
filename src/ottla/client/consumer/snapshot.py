"""The state of a running consumer at one time: its components, with the names of the Java client.

May be taken from any thread; a collection that another thread changes during the copy is copied again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from ottla.client.consumer.consumer_network_client import ConsumerNetworkClient
from ottla.client.consumer.fetching.completed_fetch import CompletedFetch
from ottla.client.consumer.parts import ConsumerParts
from ottla.client.consumer.subscription_state import TopicPartitionState
from ottla.client.network.request_view import PendingRequestView, copy_safely, group_by_node, views_of
from ottla.model import FOREVER, Node, TopicPartition

if TYPE_CHECKING:
    from ottla.client.consumer.group.consumer_coordinator import ConsumerCoordinator


class CompletedFetchView(NamedTuple):
    """Fetched data of one partition that is not fully returned."""

    partition: TopicPartition
    offset: int
    """The offset of the next record to return."""
    records: int
    size_bytes: int


class FetcherView(NamedTuple):
    """`Fetcher`: fetches in flight and fetched data."""

    nodes_with_pending_fetch: tuple[int, ...]
    completed_fetches: tuple[CompletedFetchView, ...]
    buffered_bytes: int
    memory_limit_bytes: int


class NetworkView(NamedTuple):
    """`ConsumerNetworkClient` and its `NetworkClient`: requests by node id."""

    unsent: Mapping[int, tuple[PendingRequestView, ...]]
    """Waiting for their connection."""
    in_flight_requests: Mapping[int, tuple[PendingRequestView, ...]]
    """Sent, without a response."""
    pending_completion: int
    """Responses with futures that are not completed yet."""


class AssignedPartitionView(NamedTuple):
    """One assigned partition."""

    partition: TopicPartition
    position: int | None
    lag: int | None
    paused: bool
    buffered_records: int
    buffered_bytes: int


class SubscriptionView(NamedTuple):
    """`SubscriptionState`: the subscription and the assignment."""

    type: str
    topics: tuple[str, ...]
    partitions: tuple[AssignedPartitionView, ...]


class CoordinatorView(NamedTuple):
    """`ConsumerCoordinator`: the group membership."""

    group_id: str
    state: str
    member_id: str
    generation: int
    node: Node | None
    """The coordinator; None until it is found."""
    pending_commits: int
    poll_gap_ms: float | None
    """Milliseconds since the last `poll`; None before the first."""
    max_poll_interval_ms: float


class HeartbeatView(NamedTuple):
    """`HeartbeatThread`, which has a network client of its own."""

    alive: bool
    next_ms: float | None
    """Milliseconds until the next heartbeat; None if none is due."""
    silence_ms: float | None
    """Milliseconds since the last response of the coordinator; None outside a session."""
    session_timeout_ms: float
    network: NetworkView


class ConsumerSnapshot(NamedTuple):
    """The state of all components of a consumer."""

    client_id: str
    fetcher: FetcherView
    network: NetworkView
    subscription: SubscriptionView
    coordinator: CoordinatorView | None
    """None without a group."""
    heartbeat: HeartbeatView | None
    """None before the first `poll` of a subscriber."""


def take_snapshot(client_id: str, parts: ConsumerParts, now: float) -> ConsumerSnapshot:
    """Return the current state."""
    fetcher = parts.fetcher
    completed = tuple(map(view_of_fetch, copy_safely(lambda: list(fetcher.completed_fetches))))
    waiting: dict[TopicPartition, list[CompletedFetchView]] = {}
    for fetch in completed:
        waiting.setdefault(fetch.partition, []).append(fetch)
    states = copy_safely(parts.subscriptions.states)
    subscription = SubscriptionView(
        parts.subscriptions.type.value,
        tuple(sorted(parts.subscriptions.topics)),
        tuple(view_of_partition(tp, states[tp], waiting.get(tp, ())) for tp in sorted(states)),
    )
    return ConsumerSnapshot(
        client_id,
        FetcherView(
            tuple(sorted(copy_safely(lambda: list(fetcher.nodes_with_pending_fetch)))),
            completed,
            sum(fetch.size_bytes for fetch in completed),
            fetcher.memory_limit_bytes,
        ),
        view_of_network(parts.client, now),
        subscription,
        view_of_coordinator(parts.coordinator, now) if parts.coordinator is not None else None,
        view_of_heartbeat(parts.coordinator, now) if parts.coordinator is not None else None,
    )


def view_of_fetch(fetch: CompletedFetch) -> CompletedFetchView:
    return CompletedFetchView(fetch.tp, fetch.fetch_offset, fetch.remaining_count(), fetch.size_bytes)


def view_of_partition(
    tp: TopicPartition, state: TopicPartitionState, waiting: Iterable[CompletedFetchView]
) -> AssignedPartitionView:
    position, end = state.position, state.readable_to
    lag = None if position is None or end is None else max(0, end - position)
    return AssignedPartitionView(
        tp,
        position,
        lag,
        state.is_paused,
        sum(fetch.records for fetch in waiting),
        sum(fetch.size_bytes for fetch in waiting),
    )


def view_of_network(client: ConsumerNetworkClient, now: float) -> NetworkView:
    unsent = copy_safely(lambda: {node: [entry[1] for entry in queue] for node, queue in client.unsent.items()})
    in_flight = copy_safely(lambda: [entry.request for entry in client.client.in_flight_requests])
    return NetworkView(
        {node: views_of(requests, now) for node, requests in unsent.items()},
        group_by_node(in_flight, now),
        len(client.pending_completion),
    )


def view_of_coordinator(coordinator: ConsumerCoordinator, now: float) -> CoordinatorView:
    place, heartbeat = coordinator.group_metadata(), coordinator.heartbeat
    return CoordinatorView(
        place.group_id,
        coordinator.state.value,
        place.member_id,
        place.generation_id,
        coordinator.node,
        coordinator.commits.pending,
        to_ms(heartbeat.poll_gap(now)),
        heartbeat.max_poll_interval * 1000,
    )


def view_of_heartbeat(coordinator: ConsumerCoordinator, now: float) -> HeartbeatView | None:
    thread, heartbeat = coordinator.heartbeat_thread, coordinator.heartbeat
    if thread is None:
        return None
    return HeartbeatView(
        thread.is_alive(),
        to_ms(heartbeat.time_to_next(now)),
        to_ms(heartbeat.response_gap(now)),
        heartbeat.session_timeout * 1000,
        view_of_network(thread.client, now),
    )


def to_ms(span: float) -> float | None:
    """Convert seconds to milliseconds; None for infinity."""
    return span * 1000 if abs(span) != FOREVER else None
