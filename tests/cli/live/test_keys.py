"""The bytes that a terminal sends for each key."""

import pytest

from ottla.cli.live.keys import NAMES, keys_in


@pytest.mark.parametrize(
    ("typed", "keys"),
    [
        (b"q", ["q"]),
        (b"\x1b[A\x1bOB\x1b[5~\x1b[6~", ["up", "down", "page up", "page down"]),
        (b"jk gGhl", ["down", "up", "page down", "home", "end", "left", "right"]),
        (b"\x1b", ["escape"]),
        (b"\x1b[15~?", ["?"]),  # F5 is for nothing
        (b"\x1b[1;5Cp", ["p"]),  # nor is a key with Ctrl
        ("ä?".encode(), ["?"]),
        (b"", []),
    ],
)
def test_keys_are_identified_by_name(typed: bytes, keys: list[str]) -> None:
    assert keys_in(typed) == keys


def test_every_sequence_that_has_a_name_is_read_as_one_key() -> None:
    assert [keys_in(sequence) for sequence in NAMES] == [[name] for name in NAMES.values()]
