"""The state of a partition in a work loop, as the last part of a commit's metadata. Pure.

    ottla.work/1:<finished offsets>;running=2,waiting=12,retrying=1,dead=3,oldest=1796041237641

So any client that may read the group's offsets sees it, on any broker (`ottla groups describe`). It is that of the moment of the
commit, which follows a change within about a second. After a worker was killed, it is the last one that was committed.
"""

from __future__ import annotations

import msgspec

from ottla.client.work.state.finished_offsets import PREFIX

SEPARATOR = ";"
MAX_NUMBER = 2**63 - 1


class WorkStatus(msgspec.Struct, frozen=True):
    """The unfinished records of a partition that the worker has read, by state."""

    running: int = 0
    """Calls of the function, and dead letters that are being sent."""
    waiting: int = 0
    """Records that wait for a call, or behind another record of their key."""
    retrying: int = 0
    """Records that have failed and wait for their next call."""
    dead: int = 0
    """Records that have failed for the last time, since the group began."""
    oldest: int = 0
    """The timestamp of the oldest unfinished record in milliseconds; 0 if there is none."""


def add_status(metadata: str, status: WorkStatus) -> str:
    """Return the metadata of a commit with the status; unchanged if there is nothing to report."""
    text = encode_status(status)
    return (metadata or PREFIX) + text if text else metadata


def encode_status(status: WorkStatus) -> str:
    """Return the status as the last part of the metadata; empty if all numbers are 0."""
    pairs = [f"{name}={value}" for name, value in msgspec.structs.asdict(status).items() if value]
    return SEPARATOR + ",".join(pairs) if pairs else ""


def without_status(metadata: str) -> str:
    """Return the metadata without the status: the finished offsets, or an empty text."""
    rest = metadata.partition(SEPARATOR)[0] if metadata.startswith(PREFIX) else metadata
    return "" if rest == PREFIX else rest


def decode_status(metadata: str) -> WorkStatus | None:
    """Return the status in the metadata of a commit; None if there is none or it is malformed."""
    if not metadata.startswith(PREFIX):
        return None
    text = metadata.partition(SEPARATOR)[2]
    numbers: dict[str, int] = {}
    for pair in text.split(",") if text else ():
        name, _, value = pair.partition("=")
        if not (value.isascii() and value.isdigit()) or len(value) > len(str(MAX_NUMBER)) or int(value) > MAX_NUMBER:
            return None
        if name in WorkStatus.__struct_fields__:
            numbers[name] = int(value)
    return WorkStatus(**numbers) if numbers else None
