"""What the log of a new cluster begins with: the levels of features, and passwords, that `storage format` was told.

    bootstrap.checkpoint     header │ records │ footer, in a directory that has metadata; Kafka's tool leaves the same

It is read by the first active controller alone, and counts for nothing once the log says which features there are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ottla.broker.authentication.passwords import NewUser, read_user, upsertion_of
from ottla.coordination.cluster.records import decode_record, encode_record
from ottla.coordination.cluster.scram_change import record_of
from ottla.coordination.controller.first_levels import first_levels, level_records
from ottla.errors import ConfigError
from ottla.protocol.schema import Message
from ottla.storage.state_log.snapshot import state_in, write_snapshot
from ottla.storage.state_log.voter import Quorum

BOOTSTRAP = "bootstrap.checkpoint"


def read_bootstrap(directory: Path) -> list[Message]:
    """What was told; nothing where nothing was. CorruptRecordError where it cannot be read."""
    path = directory / BOOTSTRAP
    if not path.exists():
        return []
    return [decode_record(value) for value in state_in(path.read_bytes(), BOOTSTRAP).values]


def write_bootstrap(directory: Path, records: Sequence[Message], now_ms: int) -> None:
    """At once, and in place of what was there: OSError where the disk does not take it."""
    write_snapshot(directory / BOOTSTRAP, 0, map(encode_record, records), now_ms, Quorum(), sync=True)


def first_records(
    release: str | None, wishes: Mapping[str, int], passwords: Sequence[str], *, fixed_voters: bool
) -> Sequence[Message]:
    """What the log of a new cluster is to begin with; nothing where nothing is said, as then it knows by itself."""
    if not (release or wishes or passwords):
        return ()
    levels = first_levels(release, wishes, fixed_voters=fixed_voters)
    return [*level_records(levels), *password_records(passwords)]


def password_records(lines: Sequence[str]) -> list[Message]:
    """Of `SCRAM-SHA-256=[name=alice,password=…]`, each with a salt by chance; ConfigError has no password in it."""
    users: dict[tuple[str, str], NewUser] = {}
    for line in lines:
        user = read_user(line.strip(), "--add-scram")
        if (user.name, user.mechanism) in users:
            raise ConfigError(f"--add-scram gives {user.name!r} a password for {user.mechanism} twice; give it once")
        users[user.name, user.mechanism] = user
    return [record_of({}, upsertion_of(user)) for user in users.values()]
