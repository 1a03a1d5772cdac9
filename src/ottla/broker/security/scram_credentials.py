"""Users' SCRAM credentials in the cluster's metadata, for verification of proofs and of plain passwords."""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Sequence
from typing import NamedTuple

from ottla.broker.security.decoy_credentials import DecoyCredentials
from ottla.broker.security.metadata_source import MetadataSource
from ottla.coordination.cluster.records import UserScramCredentialRecord
from ottla.digests import mac, stretched
from ottla.errors import ConfigError
from ottla.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
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
"""The maximum of verified passwords that need not be hashed again."""
LINE = re.compile(r"(SCRAM-SHA-(?:256|512))=\[(.*)\]", re.DOTALL)
OPTION = re.compile(r'(\w+)=(?:"((?:[^"\\]|\\.)*)"|([^,"]*))(?:,|$)', re.DOTALL)


class NewUser(NamedTuple):
    """A user with its new SCRAM password, as in `--add-scram`."""

    mechanism: str
    name: str
    password: str
    iterations: int
    salt: bytes = b""
    """The salt; empty for a random one."""
    salted: bytes = b""
    """The salted password, instead of `password`."""


class ScramCredentials:
    """The credentials of users in the cluster's metadata."""

    def __init__(self, cluster: MetadataSource, own_id: bytes) -> None:
        """`own_id` is the broker's `directory.id`."""
        self._cluster = cluster
        self._decoys = DecoyCredentials(cluster, own_id)
        self._secret = os.urandom(32)
        self._right: dict[tuple[str, bytes], ScramCredential] = {}

    def all(self) -> Sequence[UserScramCredentialRecord]:
        return list(self._cluster.machine.scram_credentials.values())

    def find_credential(self, mechanism: str, user: str) -> ScramCredential | None:
        """Return the credential of a user for a mechanism, if there is one."""
        kept = self._cluster.machine.scram_credentials.get((user, NUMBERS[mechanism]))
        return None if kept is None else ScramCredential(kept.salt, kept.stored_key, kept.server_key, kept.iterations)

    def build_missing(self, users: Sequence[NewUser]) -> AlterUserScramCredentialsRequest | None:
        """Return the request that creates the users without a password for their mechanism; None if there are none."""
        missing = [each for each in users if self.find_credential(each.mechanism, each.name) is None]
        return (
            AlterUserScramCredentialsRequest(upsertions=[build_upsertion(each) for each in missing])
            if missing
            else None
        )

    def find_any(self, user: str) -> tuple[str, ScramCredential]:
        """Return a credential against which a password in full is checked; a decoy for a name without a user."""
        instead = self._decoys.make_any_credential(user)  # always computed, as it takes time
        for mechanism in MECHANISMS.values():
            found = self.find_credential(mechanism, user)
            if found is not None:
                return mechanism, found
        return instead

    def make_decoy(self, mechanism: str, user: str) -> ScramCredential:
        """Return the credential for a name that no user has."""
        return self._decoys.make_credential(mechanism, user)

    def is_remembered(self, user: str, password: str) -> bool:
        """Return True if this password was verified before and is still the user's; it need not be hashed again."""
        return self._right.get((user, self._digest(password))) == self.find_any(user)[1]

    def remember_password(self, user: str, password: str, credential: ScramCredential) -> None:
        """Remember a verified password, which need not be hashed again until the user changes it."""
        if len(self._right) >= MOST_REMEMBERED:
            self._right.clear()
        self._right[user, self._digest(password)] = credential

    def _digest(self, password: str) -> bytes:
        return mac(self._secret, password.encode(), "sha256")


def check_password(mechanism: str, credential: ScramCredential, password: str) -> bool:
    """Verify a password. Takes milliseconds, so it is called in a thread."""
    return is_password(mechanism, credential, password)


def build_upsertion(user: NewUser) -> ScramCredentialUpsertion:
    """Return the request part that Kafka's tools would send for a user."""
    salt = user.salt or os.urandom(SALT_BYTES)
    salted = user.salted or stretched(DIGESTS[user.mechanism], user.password.encode(), salt, user.iterations)
    return ScramCredentialUpsertion(user.name, NUMBERS[user.mechanism], user.iterations, salt, salted)


def read_users(text: str) -> list[NewUser]:
    """Parse lines `SCRAM-SHA-512=[name=alice,password=…]`. The text of a ConfigError has no part of a line."""
    return [read_user(line.strip()) for line in text.splitlines() if line.strip()]


def read_user(line: str, source: str = "add.scram") -> NewUser:
    """Parse one user.

    Values with commas or brackets are in quotation marks, bytes in base64. An error names its source.
    """
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
        raise ConfigError(f"{source}: saltedpassword requires salt, and excludes password")
    iterations = options.get("iterations", str(LEAST_ITERATIONS))
    if not iterations.isdecimal() or not LEAST_ITERATIONS <= int(iterations) <= MOST_ITERATIONS:
        raise ConfigError(f"{source}: iterations must be {LEAST_ITERATIONS} to {MOST_ITERATIONS}")
    salt, salted = (decode_bytes(options.get(name, ""), name, source) for name in ("salt", "saltedpassword"))
    if salted and len(salted) != SALTED_BYTES[found[1]]:
        raise ConfigError(
            f"{source}: saltedpassword must have {SALTED_BYTES[found[1]]} bytes for {found[1]}, and has {len(salted)}"
        )
    return NewUser(found[1], options["name"], options.get("password", ""), int(iterations), salt, salted)


def decode_bytes(text: str, name: str, source: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        raise ConfigError(f"{source}: {name} must be bytes in base64") from None
