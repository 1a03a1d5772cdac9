"""Check that the metadata log, on which all partitions depend, can be loaded; describe the remedy if it cannot.

    no other node has it     ──► a backup, or `ottla log repair`
    others vote              ──► remove the voter, empty it, and add it again
    it is a copy of a broker ──► move it away: the controllers have all of it

The check reads the log before it is opened, so that nothing is truncated.
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
from ottla.storage.batches.damage import Damage, repair_remedy
from ottla.storage.files.regular_file import kind_of
from ottla.storage.segments.log_folder import has_state
from ottla.storage.state_log.check import START_OVER, fetch_again, find_state_damage, has_other_voters
from ottla.storage.state_log.quorum_state import FILE_NAME as PROMISES
from ottla.storage.state_log.quorum_state import QuorumState, read_quorum_state

STATE_FILE = re.compile(r"\d{20}(\.log|-\d{10}\.checkpoint)|quorum-state|leader-epoch-checkpoint")
LOG = logging.getLogger(__name__)


def ensure_whole(
    folder: Path, others: Collection[TopicPartition], recovery_point: int, node_id: int, *, is_copy: bool
) -> bool:
    """Raise ConfigError if the log in a folder is damaged, or if it is missing although other partitions or its recovery point exist.

    Return False for a missing copy, which is fetched again. `others` are the other partitions of the directory.
    """
    where_voted = fetch_again(folder) if is_copy else f"where others vote, {START_OVER}"
    alone = not is_copy and not os.path.lexists(folder / PROMISES)
    for path in find_broken_files(folder, alone=alone):
        raise ConfigError(
            f"the broker does not start, and nothing was changed: {path} is {kind_of(path)}, where a file belongs: move it away, and "
            f"restore {folder} from a backup; {where_voted}"
        )
    try:
        held = has_state(folder)
        damage = find_state_damage(folder, recovery_point) if held or (not others and folder.is_dir()) else None
    except OSError as error:
        raise ConfigError(
            f"the broker does not start, as {folder} cannot be read ({error}): restore it from a backup; {where_voted}"
        ) from error
    if damage is not None:
        raise ConfigError(
            f"the broker does not start, and nothing was changed: {damage}; restore {folder} from a backup, or {describe_remedy(folder, node_id, is_copy=is_copy)}"
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
    LOG.warning("%s is missing or empty: the metadata are fetched again from the controllers", folder)
    return False


def has_promised_nothing(folder: Path) -> bool:
    """Return True if the `quorum-state` has neither a vote nor a leader, as after a controller that was killed during its first start."""
    with suppress(CorruptRecordError, OSError):
        return read_quorum_state(folder) == QuorumState()
    return False


def find_broken_files(folder: Path, *, alone: bool) -> list[Path]:
    """Return the paths that have the name of a file of the metadata log and are not files. With `alone` snapshots are not checked."""
    found = sorted(path for path in folder.glob("*") if STATE_FILE.fullmatch(path.name) and not path.is_file())
    return [path for path in found if not (alone and path.suffix == ".checkpoint")]


def describe_remedy(folder: Path, node_id: int, *, is_copy: bool) -> str:
    """Return the remedy if there is no backup."""
    if is_copy:
        return fetch_again(folder)
    return START_OVER if has_other_voters(folder, node_id) else repair_remedy(folder)


def ensure_alone(folder: Path, node_id: int, damage: Damage) -> None:
    """Raise ConfigError if other nodes have the damaged records: after a repair by empty records this node would never fetch them."""
    if has_other_voters(folder, node_id):
        raise ConfigError(
            f"{damage}; other nodes have these records: restore {folder} from a backup; where this node votes, {START_OVER}; where it is "
            f"a broker alone, {fetch_again(folder)}"
        )
