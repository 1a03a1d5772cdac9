"""The lines of a trace socket: short when sent, expanded when read.

A busy client has tens of thousands of events per second. Frequent events are therefore sent as recorded:
`[at_ms, kind, facts]`, with the names of the facts in the first line. The reader expands them to text and named fields,
which costs ten times as much, and must import the modules of the events for this.
"""

from __future__ import annotations

import inspect
import json
from typing import Any

import msgspec

from ottla.trace import MAKERS, RecordedEvent, moment_of
from ottla.tracing.plain import plain_moment

FACTS = "facts"
"""The key of the first line with the names of the facts in short events, by kind."""
ENCODER, DECODER = msgspec.json.Encoder(), msgspec.json.Decoder()
"""Ten times as fast as the standard library's."""


def encode_line(frame: dict[str, Any]) -> bytes:
    try:
        return ENCODER.encode(frame) + b"\n"
    except (UnicodeEncodeError, OverflowError):  # a name that is not valid text; a number beyond 64 bits
        return json.dumps(frame, separators=(",", ":")).encode() + b"\n"


def frame_of(line: bytes) -> Any:
    try:
        return DECODER.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError):  # a name that is not valid text
        return json.loads(line)


def shorten_moment(recorded: list[RecordedEvent]) -> list[RecordedEvent | dict[str, Any]]:
    """Return events in the form that is sent."""
    return [each if each[1] else plain_moment(moment_of(each)) for each in recorded]  # ITSELF is ""


def facts_by_kind() -> dict[str, list[str]]:
    """Return the names of the facts in short events; `*places` means all further facts."""
    return {kind: [str(each).partition(":")[0] for each in inspect.signature(make).parameters.values()]
            for kind, make in MAKERS.items()}  # fmt: skip


def restore_frame(frame: dict[str, Any]) -> dict[str, Any]:
    """Expand the events of a line; the first line and expanded events do not change."""
    if "events" in frame:
        frame["events"] = [event if isinstance(event, dict) else restore_event(*event) for event in frame["events"]]
    return frame


def restore_event(at_ms: int, kind: str, facts: list[Any]) -> dict[str, Any]:
    """Expand a short event; an unknown event of a later version keeps its facts as they are."""
    try:
        return plain_moment(moment_of((at_ms, kind, tuple(facts))))
    except (KeyError, TypeError, ValueError):
        return {
            "at_ms": at_ms,
            "event": kind,
            "text": f"{kind}: {', '.join(map(str, facts))}",
            "facts": {"facts": facts},
        }
