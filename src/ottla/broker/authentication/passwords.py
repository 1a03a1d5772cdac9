"""Users' passwords, in the cluster's metadata: enough to check proofs, and to check a password that is shown."""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Sequence
from typing import NamedTuple

from ottla.broker.authentication.decoys import Decoys
from ottla.broker.machines.runtime import Runtime
from ottla.coordination.cluster.events import ScramCredentialsRequested
from ottla.coordination.cluster.metadata import ClusterMetadata
from ottla.coordination.cluster.records import UserScramCredentialRecord
from ottla.digests import mac, stretched
from ottla.errors import ConfigError
from ottla.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsResult,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from ottla.protocol.sasl.scram import DIGESTS
from ottla.protocol.sasl.scram_credential import (
    LEAST_ITERATIONS,
    MECHANISMS,
    MOST_ITERATIONS,
    NUMBERS,
    SALT_BYTES,
    ScramCredential,
    is_password,
)

SALTED_BYTES = {"SCRAM-SHA-256": 32, "SCRAM-SHA-512": 64}
OPTIONS = ("name", "password", "iterations", "salt", "saltedpassword")
MOST_REMEMBERED = 1000
"""Passwords that were right and need not be hashed again."""
LINE = re.compile(r"(SCRAM-SHA-(?:256|512))=\[(.*)\]", re.DOTALL)
OPTION = re.compile(r'(\w+)=(?:"((?:[^"\\]|\\.)*)"|([^,"]*))(?:,|$)', re.DOTALL)


class NewUser(NamedTuple):
    """A user as somebody wants it."""

    mechanism: str
    name: str
    password: str
    iterations: int
    salt: bytes = b""
    """Empty where it is drawn."""
    salted: bytes = b""
    """The password as somebody else has salted it, in place of the password."""


class Passwords:
    """What is kept of them."""

    def __init__(self, cluster: Runtime[ClusterMetadata], own_id: bytes) -> None:
        """`own_id` is the broker's `directory.id`."""
        self._cluster = cluster
        self._decoys = Decoys(cluster, own_id)
        self._secret = os.urandom(32)
        self._right: dict[tuple[str, bytes], ScramCredential] = {}

    def all(self) -> Sequence[UserScramCredentialRecord]:
        return list(self._cluster.machine.passwords.values())

    def alter(
        self, deletions: Sequence[ScramCredentialDeletion], upsertions: Sequence[ScramCredentialUpsertion]
    ) -> list[AlterUserScramCredentialsResult]:
        """Change them; one result for each user. What is answered with success is on the disk."""
        results: list[AlterUserScramCredentialsResult] = self._cluster.ask(
            lambda ticket: ScramCredentialsRequested(ticket, tuple(deletions), tuple(upsertions))
        )
        return results

    def credential(self, mechanism: str, user: str) -> ScramCredential | None:
        """A user's for a mechanism."""
        kept = self._cluster.machine.passwords.get((user, NUMBERS[mechanism]))
        return None if kept is None else ScramCredential(kept.salt, kept.stored_key, kept.server_key, kept.iterations)

    def ensure(self, users: Sequence[NewUser]) -> None:
        """Have these users; one who has a password for that mechanism keeps it."""
        missing = [each for each in users if self.credential(each.mechanism, each.name) is None]
        if missing:
            for result in self.alter((), [upsertion_of(each) for each in missing]):
                if result.error_code:
                    raise ConfigError(f"add.scram: {result.error_message}")

    def any_of(self, user: str) -> tuple[str, ScramCredential]:
        """Return a credential against which a password in full is checked; a decoy for a name without a user."""
        instead = self._decoys.make_any(user)  # always, since it takes time
        for mechanism in MECHANISMS.values():
            found = self.credential(mechanism, user)
            if found is not None:
                return mechanism, found
        return instead

    def decoy(self, mechanism: str, user: str) -> ScramCredential:
        """Return the credential that is sent to a client whose name has none."""
        return self._decoys.make(mechanism, user)

    def is_remembered(self, user: str, password: str) -> bool:
        """Whether this password was right before and is still the user's: then it need not be hashed again."""
        return self._right.get((user, self._mark(password))) == self.any_of(user)[1]

    def remember(self, user: str, password: str, credential: ScramCredential) -> None:
        """Have a password that was right not be hashed again, as long as the user keeps it."""
        if len(self._right) >= MOST_REMEMBERED:
            self._right.clear()
        self._right[user, self._mark(password)] = credential

    def _mark(self, password: str) -> bytes:
        return mac(self._secret, password.encode(), "sha256")


def check_password(mechanism: str, credential: ScramCredential, password: str) -> bool:
    """Takes milliseconds; for a thread."""
    return is_password(mechanism, credential, password)


def upsertion_of(user: NewUser) -> ScramCredentialUpsertion:
    """The request that Kafka's tools would send for a user."""
    salt = user.salt or os.urandom(SALT_BYTES)
    salted = user.salted or stretched(DIGESTS[user.mechanism], user.password.encode(), salt, user.iterations)
    return ScramCredentialUpsertion(user.name, NUMBERS[user.mechanism], user.iterations, salt, salted)


def read_users(text: str) -> list[NewUser]:
    """`SCRAM-SHA-512=[name=alice,password=…]`, a line each; ConfigError has none of what is in it."""
    return [read_user(line.strip()) for line in text.splitlines() if line.strip()]


def read_user(line: str, source: str = "add.scram") -> NewUser:
    """One of them. Values with commas or brackets stand in quotation marks, bytes in base64. An error names its source."""
    form = "must be SCRAM-SHA-256=[name=…,password=…] or SCRAM-SHA-512=[name=…,password=…,iterations=…]"
    found = LINE.fullmatch(line)
    if found is None:
        raise ConfigError(f"{source}: {form}")
    options: dict[str, str] = {}
    position = 0
    while position < len(found[2]):
        option = OPTION.match(found[2], position)
        if option is None or option[1] not in OPTIONS:
            raise ConfigError(f"{source}: {form}")
        options[option[1]] = option[3] if option[2] is None else re.sub(r"\\(.)", r"\1", option[2], flags=re.DOTALL)
        position = option.end()
    ways = bool(options.get("password")), bool(options.get("saltedpassword"))
    if not options.get("name") or not any(ways):
        raise ConfigError(f"{source}: {form}")
    if all(ways) or (ways[1] and not options.get("salt")):
        raise ConfigError(
            f"{source}: saltedpassword needs the salt that it was salted with, and stands in place of password"
        )
    iterations = options.get("iterations", str(LEAST_ITERATIONS))
    if not iterations.isdecimal() or not LEAST_ITERATIONS <= int(iterations) <= MOST_ITERATIONS:
        raise ConfigError(f"{source}: iterations must be {LEAST_ITERATIONS} to {MOST_ITERATIONS}")
    salt, salted = (bytes_of(options.get(name, ""), name, source) for name in ("salt", "saltedpassword"))
    if salted and len(salted) != SALTED_BYTES[found[1]]:
        raise ConfigError(
            f"{source}: saltedpassword must have {SALTED_BYTES[found[1]]} bytes for {found[1]}, and has {len(salted)}"
        )
    return NewUser(found[1], options["name"], options.get("password", ""), int(iterations), salt, salted)


def bytes_of(text: str, name: str, source: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        raise ConfigError(f"{source}: {name} must be bytes in base64") from None
