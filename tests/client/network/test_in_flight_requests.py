from __future__ import annotations

from typing import Any

import pytest

from ottla.client.network.client_request import ClientRequest
from ottla.client.network.in_flight_requests import InFlightRequest, InFlightRequests


def entry(name: Any, node: int = 1, *, deadline: float = 10.0, expect_response: bool = True) -> InFlightRequest:
    request = ClientRequest(node, name, 0.0, 1000, lambda response: None, expect_response=expect_response)
    return InFlightRequest(request, None, 0, 0, deadline, 0.0)


def test_a_response_belongs_to_the_oldest_request_of_its_broker() -> None:
    requests = InFlightRequests(5)
    for name, node in [("a", 1), ("b", 1), ("c", 2)]:
        requests.add(entry(name, node))
    taken = [requests.complete_next(1), requests.complete_next(2), requests.complete_next(1)]
    assert [e.request.message for e in taken if e] == ["a", "c", "b"]
    assert requests.complete_next(1) is None


def test_a_request_without_a_response_completes_when_it_is_sent() -> None:
    requests = InFlightRequests(5)
    for e in (entry("a"), entry("silent", expect_response=False), entry("b")):
        requests.add(e)
    assert requests.complete_sent(1) is None
    sent = requests.complete_sent(1)
    assert sent is not None
    assert sent.request.message == "silent"
    assert requests.complete_sent(1) is None
    assert requests.count(1) == 2


@pytest.mark.behaviour("P5")
def test_no_more_than_the_limit_may_be_unanswered() -> None:
    requests = InFlightRequests(2)
    requests.add(entry("a"))
    assert requests.can_send_more(1)
    requests.add(entry("b"))
    assert not requests.can_send_more(1)
    assert requests.can_send_more(2)


def test_a_lost_connection_returns_its_requests_in_order() -> None:
    requests = InFlightRequests(5)
    for name in "abc":
        requests.add(entry(name))
    assert [e.request.message for e in requests.clear(1)] == ["a", "b", "c"]
    assert requests.count() == 0


def test_a_broker_that_exceeds_a_deadline_is_returned() -> None:
    requests = InFlightRequests(5)
    requests.add(entry("a", 1, deadline=10))
    requests.add(entry("b", 2, deadline=20))
    assert requests.next_deadline() == 10
    assert requests.find_expired(9.9) == []
    assert requests.find_expired(10) == [1]


def test_time_without_polling_does_not_count_towards_a_request_timeout() -> None:
    requests = InFlightRequests(5)
    requests.add(entry("a", deadline=10))
    requests.extend_deadlines(0.5)
    assert requests.next_deadline() == 10
    requests.extend_deadlines(30)
    assert requests.next_deadline() == 40
