"""Run a machine by a transcript: a line for each command, its output below, a blank line between.

create orders partitions=2
record TopicRecord orders
…
reply orders ok

ids 5 → reply 1000
wait 6 →

An output of at most one line may follow an arrow, and the next such command may follow without a blank line.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from ottla.coordination.machine import Decision

ARROW = " →"


def steps_of(text: str) -> list[tuple[str, list[str]]]:
    """The commands and what is expected to happen after each."""
    return [step for block in re.split(r"\n *\n", text.strip()) if block.strip() for step in steps_in(block)]


def steps_in(block: str) -> list[tuple[str, list[str]]]:
    """One command over what happened, or any number of lines with an arrow."""
    first, *under = [" ".join(line.split()) for line in block.strip().splitlines()]
    if ARROW not in first:
        assert not any(ARROW in line for line in under), f"a blank line is missing under {first}"
        return [(first, under)]
    return [(command.strip(), [what.strip()] if what.strip() else []) for command, what in map(parted, [first, *under])]


def parted(line: str) -> tuple[str, str]:
    command, arrow, what = line.partition(ARROW)
    assert arrow, f"{line}: an arrow is missing, or a blank line above"
    return command, what


def run(
    machine: Any,
    text: str,
    event_of: Callable[[str], Any],
    show_record: Callable[[Any], str],
    show_reply: Callable[[Any], list[str]],
    now_of: Callable[[str], float] = lambda command: 0.0,
) -> None:
    """Play the transcript: decide, replay, check, and compare what happened with what is written."""
    for command, expected in steps_of(text):
        decision: Decision[Any] = machine.decide(event_of(command), now_of(command))
        for record in decision.records:
            machine.replay(record)
        machine.check()
        happened = [f"record {show_record(record)}" for record in decision.records]
        for reply in decision.replies:
            happened += [f"reply {line}" for line in show_reply(reply.message)]
        assert happened == expected, command
