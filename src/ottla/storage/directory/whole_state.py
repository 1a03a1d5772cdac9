"""Whether the log of a state can be taken up, on which all other partitions depend; what to say and to do where it cannot.

    nobody else has it       ──► a backup, or `ottla log repair`
    others vote              ──► out of the voters, emptied, and in again
    it is a copy of a broker ──► moved away: the controllers have all of it

It is read before anything is opened, so that nothing is cut off.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from ottla.errors import ConfigError, CorruptRecordError
from ottla.model import TopicPartition
from ottla.storage.batches.damage import Damage, remedy
from ottla.storage.files.regular_file import kind_of
from ottla.storage.segments.log_folder import holds_state
from ottla.storage.state_log.check import START_OVER, damage_in, fetch_anew, others_vote
from ottla.storage.state_log.quorum_state import FILE_NAME as PROMISES
from ottla.storage.state_log.quorum_state import QuorumState, read_quorum_state

STATE_FILE = re.compile(r"\d{20}(\.log|-\d{10}\.checkpoint)|quorum-state|leader-epoch-checkpoint")
LOG = logging.getLogger(__name__)


def ensure_whole(
    folder: Path, others: Collection[TopicPartition], recovery_point: int, node_id: int, *, is_copy: bool
) -> bool:
    """ConfigError where the log in a folder is damaged, or missing while there are other partitions.

    False where it is a copy that is missing, and is to be fetched anew.
    """
    where_voted = fetch_anew(folder) if is_copy else f"where others vote, {START_OVER}"
    alone = not is_copy and not os.path.lexists(folder / PROMISES)
    for path in strangers(folder, alone=alone):
        raise ConfigError(
            f"the broker does not start, and nothing was changed: {path} is {kind_of(path)}, where a file belongs: move it away, and "
            f"restore {folder} from a backup; {where_voted}"
        )
    try:
        held = holds_state(folder)
        damage = damage_in(folder, recovery_point) if held or (not others and folder.is_dir()) else None
    except OSError as error:
        raise ConfigError(
            f"the broker does not start, as {folder} cannot be read ({error}): restore it from a backup; {where_voted}"
        ) from error
    if damage is not None:
        raise ConfigError(
            f"the broker does not start, and nothing was changed: {damage}; restore {folder} from a backup, or {way_out(folder, node_id, is_copy=is_copy)}"
        )
    if held or not (others or (recovery_point and not (alone and any(folder.glob("*.checkpoint"))))):
        return True
    if not (is_copy or recovery_point) and has_promised_nothing(folder):
        return True
    if not is_copy:
        rest = f"{folder.parent} holds {min(others)} and {len(others) - 1} more" if others else "there was a log in it"
        raise ConfigError(
            f"{folder} is missing or empty, while {rest}: restore it from a backup, or choose another data directory; {where_voted}; "
            "nothing was changed"
        )
    LOG.warning("%s is missing or empty: the metadata are fetched anew from the controllers", folder)
    return False


def has_promised_nothing(folder: Path) -> bool:
    """Whether a controller was begun here and has heard of no leader: killed so early that only its broker half had written anything."""
    with suppress(CorruptRecordError, OSError):
        return read_quorum_state(folder) == QuorumState()
    return False


def strangers(folder: Path, *, alone: bool) -> list[Path]:
    """What has the name of a file of such a log and is none. A node that is alone goes on without that snapshot."""
    found = sorted(path for path in folder.glob("*") if STATE_FILE.fullmatch(path.name) and not path.is_file())
    return [path for path in found if not (alone and path.suffix == ".checkpoint")]


def way_out(folder: Path, node_id: int, *, is_copy: bool) -> str:
    """What helps beside a backup."""
    if is_copy:
        return fetch_anew(folder)
    return START_OVER if others_vote(folder, node_id) else remedy(folder)


def ensure_alone(folder: Path, node_id: int, damage: Damage) -> None:
    """ConfigError where others have these records: a node that has nothing in their place would never hear of it."""
    if others_vote(folder, node_id):
        raise ConfigError(
            f"{damage}; other nodes have these records: restore {folder} from a backup; where this node votes, {START_OVER}; where it is "
            f"a broker alone, {fetch_anew(folder)}"
        )
