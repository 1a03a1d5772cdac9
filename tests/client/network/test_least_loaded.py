"""Who is asked what any broker can answer: told what became of each, and nothing else."""

from __future__ import annotations

from ottla.client.network.connection_states import ConnectionStates
from ottla.client.network.in_flight_requests import InFlightRequests
from ottla.client.network.least_loaded import least_loaded
from ottla.model import Node
from tests.client.network.test_connection_states import states

NODES = [Node(number, "kafka.example.org", 9092 + number) for number in (1, 2, 3)]


def asked(nodes: ConnectionStates, now: float = 0.0) -> int | None:
    node = least_loaded(NODES, nodes, InFlightRequests(5), now)
    return None if node is None else node.node_id


def connected(nodes: ConnectionStates, *ids: int) -> None:
    for each in ids:
        nodes.connecting(each, now=0)
        nodes.ready(each)


def test_one_that_is_connected_is_asked_rather_than_one_that_is_being_connected_to_and_this_rather_than_the_rest() -> (
    None
):
    nodes = states()
    assert asked(nodes) == 1
    nodes.connecting(2, now=0)
    assert asked(nodes) == 2
    connected(nodes, 3)
    assert asked(nodes) == 3


def test_one_that_was_late_is_not_asked_though_it_alone_is_connected() -> None:
    nodes = states()
    connected(nodes, 1)
    nodes.doubt(1)
    assert asked(nodes) == 2


def test_what_one_that_was_late_says_itself_does_not_take_the_doubt_away() -> None:
    nodes = states()
    connected(nodes, 1)
    nodes.doubt(1)
    nodes.heard_of_others(1)
    assert asked(nodes) == 2
    connected(nodes, 2)
    nodes.heard_of_others(2)
    assert not nodes.is_doubted(1)


def test_one_to_which_no_connection_came_about_is_asked_after_the_others_though_it_is_tried_again() -> None:
    nodes = states()
    nodes.connecting(1, now=0)
    nodes.disconnected(1, "nobody answered", now=0)
    nodes.connecting(1, now=1)
    assert asked(nodes, now=1) == 2


def test_where_all_others_have_to_be_left_alone_one_in_doubt_is_asked() -> None:
    nodes = states()
    connected(nodes, 1)
    nodes.doubt(1)
    for each in (2, 3):
        nodes.connecting(each, now=0)
        nodes.disconnected(each, "refused", now=0)
    assert asked(nodes, now=0.01) == 1
    nodes.disconnected(1, "refused", now=0)
    assert asked(nodes, now=0.01) is None
