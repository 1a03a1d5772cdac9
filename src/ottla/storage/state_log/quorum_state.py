"""The vote of this node and the leader that it knows: Kafka's `quorum-state`, one line of JSON next to the metadata log.

The file is on the disk before another node learns of its content. A voter that forgets its vote votes twice, and then an epoch has two
leaders. Therefore a file that cannot be read stops a start, and is never recreated.
"""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any, NamedTuple

from ottla.errors import CorruptRecordError
from ottla.kafka_id import id_of, text_of
from ottla.storage.files.durable import replace_file
from ottla.storage.files.regular_file import read_whole

FILE_NAME = "quorum-state"
NOBODY = -1
NO_DIRECTORY = uuid.UUID(int=0)
BY_ID_ALONE, BY_DIRECTORY = 0, 1
"""Versions of the file: where voters are in everybody's settings, and where they are in the log (`kraft.version` 1)."""


class QuorumState(NamedTuple):
    """The state that a voter must not forget."""

    leader_epoch: int = 0
    leader_id: int = NOBODY
    voted_id: int = NOBODY
    voted_directory_id: uuid.UUID = NO_DIRECTORY
    """Zero in version 0, where a voter is known by its number alone."""


def read_quorum_state(directory: Path) -> QuorumState | None:
    """None where there is no file: nothing was ever promised. CorruptRecordError where it is not whole."""
    path = directory / FILE_NAME
    try:
        return parse_state(read_whole(path))
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as error:
        fault = f"it has no {error.args[0]}" if isinstance(error, KeyError) else str(error)
        raise CorruptRecordError(f"{path} cannot be read ({fault})") from None


def lost_vote_error(what: str, *, alone: bool) -> CorruptRecordError:
    """Return the error for a voter without its vote, with the remedy; a voter that is `alone` has promised nothing to others."""
    if alone:
        return CorruptRecordError(f"{what}: restore it from a backup, or, as this node votes alone, remove the file")
    return CorruptRecordError(
        f"{what}, and without it this node might vote twice: restore it from a backup, or take the node out of the voters, "
        "empty its directory, and add it again"
    )


def write_quorum_state(directory: Path, state: QuorumState, version: int = BY_DIRECTORY) -> None:
    """Put it on the disk before returning; a crash leaves the old file or the new. OSError where the disk does not take it."""
    replace_file(directory / FILE_NAME, format_state(state, version))


def format_state(state: QuorumState, version: int) -> str:
    """Return the text as Kafka writes it; the additional fields of version 0 are not read."""
    fields: dict[str, Any] = {"leaderId": state.leader_id, "leaderEpoch": state.leader_epoch, "votedId": state.voted_id}
    if version == BY_ID_ALONE:
        fields = {"clusterId": "", **fields, "appliedOffset": 0, "currentVoters": []}
    else:
        fields["votedDirectoryId"] = text_of(state.voted_directory_id)
    return json.dumps({**fields, "data_version": version}, separators=(",", ":"))


def parse_state(data: bytes) -> QuorumState:
    """ValueError, KeyError or TypeError where it is not that."""
    fields = json.loads(data)
    version = fields["data_version"]
    if version not in (BY_ID_ALONE, BY_DIRECTORY):
        raise ValueError(f"data_version is {version!r}, which must be 0 or 1")
    directory = id_of(fields["votedDirectoryId"]) if version == BY_DIRECTORY else NO_DIRECTORY
    epoch, leader, voted = (checked_number(fields[name]) for name in ("leaderEpoch", "leaderId", "votedId"))
    state = QuorumState(epoch, leader, voted, directory)
    if state.leader_epoch < 0 or min(state.leader_id, state.voted_id) < NOBODY:
        raise ValueError(f"{state} cannot be")
    return state


def checked_number(value: object) -> int:
    """JSON's truth is no number, though Python's is."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{value!r} is no number")
    return value
