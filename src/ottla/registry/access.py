"""Users, tokens and permissions of a registry, from a file. Pure, except for `read_access`.

The file is JSON:

    {"users": [{"username": "alice", "password": "scrypt:SALT:HASH"}],
     "tokens": [{"username": "ci", "sha256": "HEX"}],
     "permissions": [{"username": "alice", "operation": "Write", "resource": "Subject:flights-.*"}]}

A resource is `Subject:REGEX` or `Config:`, which means the global configs and modes. Write includes Read. A user without
a permission for a subject gets 403, a request without a known user 401.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import secrets
from collections.abc import Sequence
from pathlib import Path

import msgspec

from ottla.errors import ConfigError
from ottla.registry.errors import RegistryError

READ, WRITE = "Read", "Write"
SCRYPT = {"n": 1 << 14, "r": 8, "p": 1}
MOST_VERIFIED = 1_000
"""The limit on remembered logins; computing a hash takes 50 ms."""
CONFIG = "Config:"


class User(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A user with a hashed password."""

    username: str
    password: str


class Token(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A bearer token by its digest."""

    username: str
    sha256: str


class Permission(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A permission of a user; `*` means every user."""

    username: str
    operation: str
    resource: str


class AccessFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The contents of the file."""

    users: list[User] = []
    tokens: list[Token] = []
    permissions: list[Permission] = []


class Access:
    """Authenticates and authorizes requests."""

    def __init__(self, file: AccessFile) -> None:
        """Raise ConfigError for a wrong entry."""
        self._users = {each.username: each.password for each in file.users}
        self._tokens = {each.sha256.lower(): each.username for each in file.tokens}
        self._permissions = [(each.username, each.operation, compile_resource(each)) for each in file.permissions]
        self._verified: dict[bytes, str] = {}
        """Users by the digest of a header that was right, so that a password is hashed once."""
        for name, password in self._users.items():
            if len(password.split(":")) != 3 or not password.startswith("scrypt:"):
                raise ConfigError(f"user {name!r}: expected a password as printed by ottla registry --hash-password")

    def authenticate(self, header: str) -> str:
        """Return the user of an Authorization header; raise RegistryError 401."""
        scheme, _, given = header.partition(" ")
        user = None
        if scheme.lower() == "basic":
            user = self._check_password(given)
        elif scheme.lower() == "bearer":
            user = self._tokens.get(hashlib.sha256(given.strip().encode()).hexdigest())
        if user is None:
            raise RegistryError(401, 40101, "Unauthorized: the user or its password is unknown")
        if len(self._verified) >= MOST_VERIFIED:
            self._verified.clear()
        self._verified[hashlib.sha256(header.encode()).digest()] = user
        return user

    def find_verified(self, header: str) -> str | None:
        """Return the user of a header that was right before."""
        return self._verified.get(hashlib.sha256(header.encode()).digest())

    def _check_password(self, given: str) -> str | None:
        try:
            name, colon, password = base64.b64decode(given, validate=True).decode().partition(":")
        except ValueError:
            return None
        stored = self._users.get(name, DECOY)
        is_right = verify_password(password, stored)
        return name if colon and is_right and name in self._users else None

    def allows(self, user: str, operation: str, resource: str) -> bool:
        """Return True if a user may read or write a resource."""
        return any(
            name in ("*", user) and granted in (operation, WRITE) and pattern.fullmatch(resource)
            for name, granted, pattern in self._permissions
        )

    def check(self, user: str, operation: str, resource: str) -> None:
        """Raise RegistryError 403 if a user may not read or write a resource."""
        if not self.allows(user, operation, resource):
            raise RegistryError(403, 40301, f"user {user!r} has no permission to {operation.lower()} {resource}")

    def readable(self, user: str, subjects: Sequence[str]) -> list[str]:
        """Return the subjects that a user may read."""
        return [each for each in subjects if self.allows(user, READ, f"Subject:{each}")]


def compile_resource(permission: Permission) -> re.Pattern[str]:
    """Return the pattern of a permission; raise ConfigError if it is wrong."""
    kind, colon, pattern = permission.resource.partition(":")
    if permission.operation not in (READ, WRITE) or kind not in ("Subject", "Config") or not colon:
        raise ConfigError(
            f"permission of {permission.username!r}: expected operation Read or Write and resource Subject:REGEX or Config:"
        )
    try:
        return re.compile(f"{kind}:(?:{pattern})" if kind == "Subject" else CONFIG)
    except re.error as error:
        raise ConfigError(
            f"permission of {permission.username!r}: {pattern!r} is no regular expression: {error}"
        ) from None


def hash_password(password: str) -> str:
    """Return a password as it is stored."""
    salt = secrets.token_hex(16)
    return f"scrypt:{salt}:{hashlib.scrypt(password.encode(), salt=salt.encode(), **SCRYPT).hex()}"


DECOY = "scrypt:0:0"


def verify_password(password: str, stored: str) -> bool:
    """Return True if a password is right. The time does not depend on the user."""
    _, salt, digest = stored.split(":")
    given = hashlib.scrypt(password.encode(), salt=salt.encode(), **SCRYPT).hex()
    return hmac.compare_digest(given.encode(), digest.encode())


def read_access(path: str) -> Access:
    """Return the access rules of a file; raise ConfigError if it cannot be read."""
    try:
        return Access(msgspec.json.decode(Path(path).read_bytes(), type=AccessFile))
    except OSError as error:
        raise ConfigError(f"--auth {path}: {error.strerror}") from None
    except (msgspec.DecodeError, ConfigError) as error:
        raise ConfigError(f"--auth {path}: {error}") from None


def resource_of(parts: Sequence[str], subject: str | None) -> str | None:
    """Return the resource of a path, None if it needs none."""
    if subject is not None:
        return f"Subject:{subject}"
    return CONFIG if parts and parts[0] in ("config", "mode", "contexts") else None
