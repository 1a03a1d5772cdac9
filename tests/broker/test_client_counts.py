"""Requests by client, as many names as there are."""

from __future__ import annotations

from ottla.broker.requests.client_counts import CLIENT_ID, MOST_BYTES, MOST_CLIENTS, OTHERS, ClientCounts


def frame(name: bytes | None, rest: bytes = b"body") -> memoryview:
    """A request of a client, its header as far as it counts."""
    length = (-1 if name is None else len(name)).to_bytes(2, "big", signed=True)
    return memoryview(bytes(CLIENT_ID - 2) + length + (name or b"") + rest)


def counted(*frames: memoryview) -> dict[str, int]:
    counts = ClientCounts()
    for each in frames:
        counts.note(each)
    return dict(counts.by_client())


def test_requests_are_counted_by_their_client_the_most_frequent_first() -> None:
    told = counted(frame(b"a"), frame(b"b"), frame(b"b"), frame(None), frame(b""))
    assert list(told.items()) == [("b", 2), ("", 2), ("a", 1)]


def test_names_without_end_are_counted_together() -> None:
    told = counted(*(frame(b"c%d" % n) for n in range(MOST_CLIENTS + 7)), frame(b"c0"))
    assert len(told) == MOST_CLIENTS + 1
    assert (told["c0"], told[OTHERS]) == (2, 7)


def test_a_long_name_is_cut_and_one_that_is_no_text_counts_once() -> None:
    told = counted(frame(b"x" * 1000), frame(b"\xff"), frame(b"\xfe"), frame(b"cut", b"")[: CLIENT_ID + 1])
    assert told == {"x" * MOST_BYTES: 1, "\ufffd": 2, "c": 1}
