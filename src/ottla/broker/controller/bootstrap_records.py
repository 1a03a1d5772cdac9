"""The records for `bootstrap.checkpoint`, with which the metadata log of a new cluster starts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ottla.broker.security.scram_credentials import NewUser, build_upsertion, read_user
from ottla.coordination.cluster.scram_change import build_record
from ottla.coordination.controller.initial_levels import build_level_records, choose_initial_levels
from ottla.errors import ConfigError
from ottla.protocol.schema import Message


def build_bootstrap_records(
    release: str | None, requested_levels: Mapping[str, int], passwords: Sequence[str], *, fixed_voters: bool
) -> Sequence[Message]:
    """Return feature levels and SCRAM users for a new cluster; empty without options, as the defaults apply then."""
    if not (release or requested_levels or passwords):
        return ()
    levels = choose_initial_levels(release, requested_levels, fixed_voters=fixed_voters)
    return [*build_level_records(levels), *password_records(passwords)]


def password_records(lines: Sequence[str]) -> list[Message]:
    """Return records for lines like `SCRAM-SHA-256=[name=alice,password=…]`, each with a random salt.

    ConfigError if a line is malformed or repeats a user; its text contains no password.
    """
    users: dict[tuple[str, str], NewUser] = {}
    for line in lines:
        user = read_user(line.strip(), "--add-scram")
        if (user.name, user.mechanism) in users:
            raise ConfigError(f"--add-scram gives {user.name!r} a password for {user.mechanism} twice; give it once")
        users[user.name, user.mechanism] = user
    return [build_record({}, build_upsertion(user)) for user in users.values()]
