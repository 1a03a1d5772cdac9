"""The choice of the broker for a request that any broker can answer, from the past results of each."""

from __future__ import annotations

from ottla.client.network.connection_states import ConnectionStates
from ottla.client.network.in_flight_requests import InFlightRequests
from ottla.client.network.least_loaded import choose_least_loaded
from ottla.model import Node
from tests.client.network.test_connection_states import states

NODES = [Node(number, "kafka.example.org", 9092 + number) for number in (1, 2, 3)]


def choose_node(nodes: ConnectionStates, now: float = 0.0) -> int | None:
    node = choose_least_loaded(NODES, nodes, InFlightRequests(5), now)
    return None if node is None else node.node_id


def connected(nodes: ConnectionStates, *ids: int) -> None:
    for each in ids:
        nodes.start_connecting(each, now=0)
        nodes.mark_ready(each)


def test_a_connected_node_is_preferred_to_a_connecting_one_and_that_to_the_others() -> None:
    nodes = states()
    assert choose_node(nodes) == 1
    nodes.start_connecting(2, now=0)
    assert choose_node(nodes) == 2
    connected(nodes, 3)
    assert choose_node(nodes) == 3


def test_a_node_that_timed_out_is_not_chosen_even_if_only_it_is_connected() -> None:
    nodes = states()
    connected(nodes, 1)
    nodes.mark_doubted(1)
    assert choose_node(nodes) == 2


def test_an_update_from_a_node_that_timed_out_does_not_clear_its_doubt() -> None:
    nodes = states()
    connected(nodes, 1)
    nodes.mark_doubted(1)
    nodes.clear_doubts(1)
    assert choose_node(nodes) == 2
    connected(nodes, 2)
    nodes.clear_doubts(2)
    assert not nodes.is_doubted(1)


def test_a_node_that_failed_to_connect_is_chosen_after_the_others_even_while_reconnecting() -> None:
    nodes = states()
    nodes.start_connecting(1, now=0)
    nodes.record_disconnect(1, "nobody answered", now=0)
    nodes.start_connecting(1, now=1)
    assert choose_node(nodes, now=1) == 2


def test_a_node_in_doubt_is_chosen_when_all_others_are_in_backoff() -> None:
    nodes = states()
    connected(nodes, 1)
    nodes.mark_doubted(1)
    for each in (2, 3):
        nodes.start_connecting(each, now=0)
        nodes.record_disconnect(each, "refused", now=0)
    assert choose_node(nodes, now=0.01) == 1
    nodes.record_disconnect(1, "refused", now=0)
    assert choose_node(nodes, now=0.01) is None
