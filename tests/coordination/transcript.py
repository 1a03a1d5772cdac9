"""Runs a machine by a transcript: a line for each command, what happened under it, a blank line between.

create orders partitions=2
record TopicRecord orders
…
reply orders ok
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ottla.coordination.machine import Decision


def steps_of(text: str) -> list[tuple[str, list[str]]]:
    """The commands and what is expected to happen after each."""
    blocks = [block.strip().splitlines() for block in text.strip().split("\n\n")]
    return [(block[0].strip(), [line.strip() for line in block[1:]]) for block in blocks]


def run(
    machine: Any,
    text: str,
    event_of: Callable[[str], Any],
    show_record: Callable[[Any], str],
    show_reply: Callable[[Any], list[str]],
) -> None:
    """Play the transcript: decide, replay, check, and compare what happened with what is written."""
    for command, expected in steps_of(text):
        decision: Decision[Any] = machine.decide(event_of(command), 0.0)
        for record in decision.records:
            machine.replay(record)
        machine.check()
        happened = [f"record {show_record(record)}" for record in decision.records]
        for reply in decision.replies:
            happened += [f"reply {line}" for line in show_reply(reply.message)]
        assert happened == expected, command
