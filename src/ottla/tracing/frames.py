"""Lines of a trace's socket, short as they come and whole as they are read.

Of a busy client there are tens of thousands of events a second. So one that is frequent comes as it was noted: `[at_ms, kind, facts]`, with
the names of the facts in the first line. Whoever looks makes it whole, which costs ten times as much: with its text, and its fields by name.
Whoever makes lines whole has imported those whose events they are.
"""

from __future__ import annotations

import inspect
import json
from typing import Any

import msgspec

from ottla.trace import MAKERS, Told, moment_of
from ottla.tracing.plain import plain_moment

FACTS = "facts"
"""Of the first line: the names of what stands in short events, by their kind."""
ENCODER, DECODER = msgspec.json.Encoder(), msgspec.json.Decoder()
"""Ten times as quick as the standard library's."""


def line(frame: dict[str, Any]) -> bytes:
    try:
        return ENCODER.encode(frame) + b"\n"
    except (UnicodeEncodeError, OverflowError):  # a name that is no text; a number beyond 64 bits
        return json.dumps(frame, separators=(",", ":")).encode() + b"\n"


def frame_of(line: bytes) -> Any:
    try:
        return DECODER.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError):  # a name that is no text
        return json.loads(line)


def short(told: list[Told]) -> list[Told | dict[str, Any]]:
    """Events as they go through the socket."""
    return [each if each[1] else plain_moment(moment_of(each)) for each in told]  # ITSELF is ""


def facts_by_kind() -> dict[str, list[str]]:
    """The names of what stands in a short event; `*places` are all that follow."""
    return {kind: [str(each).partition(":")[0] for each in inspect.signature(make).parameters.values()]
            for kind, make in MAKERS.items()}  # fmt: skip


def whole(frame: dict[str, Any]) -> dict[str, Any]:
    """A line with each event whole; the first line and what is whole already stay as they are."""
    if "events" in frame:
        frame["events"] = [event if isinstance(event, dict) else whole_event(*event) for event in frame["events"]]
    return frame


def whole_event(at_ms: int, kind: str, facts: list[Any]) -> dict[str, Any]:
    """One that a later version tells, and this one does not know, keeps its facts as they are."""
    try:
        return plain_moment(moment_of((at_ms, kind, tuple(facts))))
    except (KeyError, TypeError, ValueError):
        return {
            "at_ms": at_ms,
            "event": kind,
            "text": f"{kind}: {', '.join(map(str, facts))}",
            "facts": {"facts": facts},
        }
