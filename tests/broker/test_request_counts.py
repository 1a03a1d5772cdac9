"""Requests by client, as many names as there are."""

from __future__ import annotations

from types import ModuleType

import pytest

from ottla.broker.network_server import request_counts
from ottla.broker.network_server.bounded_names import MOST_NAMES, OTHERS
from ottla.protocol.messages.fetch import FetchRequest
from tests.plain import plain

PLAIN = plain("ottla.broker.network_server.request_counts")
CLIENT_ID, MOST_BYTES = PLAIN.CLIENT_ID, PLAIN.MOST_BYTES
NO_API = 12_345
Counted = dict[str, int]


@pytest.fixture(params=["compiled", "plain"])
def form(request: pytest.FixtureRequest) -> ModuleType:
    """The module as it runs, and as it runs uncompiled."""
    return PLAIN if request.param == "plain" else request_counts


def frame(name: bytes | None, rest: bytes = b"body") -> memoryview:
    """A request of a client, its header as far as it counts."""
    length = (-1 if name is None else len(name)).to_bytes(2, "big", signed=True)
    return memoryview(bytes(CLIENT_ID - 2) + length + (name or b"") + rest)


def counted(form: ModuleType, *frames: memoryview) -> Counted:
    counts = form.RequestCounts()
    for each in frames:
        counts.record(each)
    return dict(counts.by_client())


def test_requests_are_counted_by_client_the_most_frequent_first(form: ModuleType) -> None:
    reported = counted(form, frame(b"a"), frame(b"b"), frame(b"b"), frame(None), frame(b""))
    assert list(reported.items()) == [("b", 2), ("", 2), ("a", 1)]


def test_an_unlimited_number_of_client_names_is_counted_together(form: ModuleType) -> None:
    reported = counted(form, *(frame(b"c%d" % n) for n in range(MOST_NAMES + 7)), frame(b"c0"))
    assert len(reported) == MOST_NAMES + 1
    assert (reported["c0"], reported[OTHERS]) == (2, 7)


def test_a_client_is_counted_once_between_two_readings(form: ModuleType) -> None:
    counts = form.RequestCounts()
    for name in (b"a", b"a", b"ab", b"a"):
        counts.record(frame(name))
    assert counts.by_client() == counts.by_client() == [("a", 3), ("ab", 1)]
    counts.record(frame(b"a"))
    assert counts.by_client() == [("a", 4), ("ab", 1)]


def test_a_long_name_is_truncated_and_invalid_names_are_counted_together(form: ModuleType) -> None:
    reported = counted(form, frame(b"x" * 1000), frame(b"\xff"), frame(b"\xfe"), frame(b"cut", b"")[: CLIENT_ID + 1])
    assert reported == {"x" * MOST_BYTES: 1, "\ufffd": 2, "c": 1}


def test_requests_are_counted_by_api_without_unknown_ones(form: ModuleType) -> None:
    counts = form.RequestCounts()
    for key in (FetchRequest.KEY, 0, NO_API, FetchRequest.KEY):
        counts.record(memoryview(key.to_bytes(2, "big") + bytes(frame(b"a"))[2:]))
    counts.record(memoryview(b""))
    counts.record(memoryview(bytes(CLIENT_ID - 1)))
    assert counts.by_api() == {0: 1, FetchRequest.KEY: 2}
    assert counts.by_client() == [("a", 4)]
