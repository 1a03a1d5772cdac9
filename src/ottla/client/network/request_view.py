"""Requests in the snapshot of a running client, which any thread may take."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeVar

from ottla.client.network.client_request import ClientRequest

T = TypeVar("T")


class PendingRequestView(NamedTuple):
    """A request without a response."""

    api: str
    age_ms: float
    correlation_id: int
    """-1 while it has not been sent."""


def copy_safely(copy: Callable[[], T]) -> T:
    """Call `copy` until no other thread changes the collection meanwhile."""
    while True:
        try:
            return copy()
        except RuntimeError:  # "changed size during iteration"
            continue


def views_of(requests: Iterable[ClientRequest], now: float) -> tuple[PendingRequestView, ...]:
    return tuple(
        PendingRequestView(
            type(each.message).__name__.removesuffix("Request"), (now - each.created) * 1000, each.correlation_id
        )
        for each in requests
    )


def group_by_node(requests: Iterable[ClientRequest], now: float) -> dict[int, tuple[PendingRequestView, ...]]:
    """Return the requests by node, in the order in which they were made."""
    nodes: dict[int, list[ClientRequest]] = {}
    for request in requests:
        nodes.setdefault(request.node_id, []).append(request)
    return {node: views_of(of_node, now) for node, of_node in nodes.items()}
