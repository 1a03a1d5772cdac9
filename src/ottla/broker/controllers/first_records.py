"""The records that the log of a new cluster is to begin with, as who formats its directory wants them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ottla.broker.authentication.passwords import NewUser, read_user, upsertion_of
from ottla.coordination.cluster.scram_change import record_of
from ottla.coordination.controller.first_levels import first_levels, level_records
from ottla.errors import ConfigError
from ottla.protocol.schema import Message


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
