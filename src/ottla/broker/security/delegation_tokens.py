"""Delegation tokens (KIP-48): their owners, their lifetime, and authentication by them.

A token is an id and its HMAC, made with a secret of the broker that is in no log. A client authenticates by it with
SCRAM: the id is the user name, the HMAC the password.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Protocol

from ottla.broker.settings.config import BrokerConfig
from ottla.clock import Clock
from ottla.coordination.cluster.events import TokenCreationRequested, TokenDeletionRequested
from ottla.coordination.cluster.metadata import ClusterMetadata
from ottla.coordination.cluster.records import DelegationTokenRecord
from ottla.digests import are_same, mac
from ottla.errors import ErrorCode, KafkaError
from ottla.kafka_id import new_id
from ottla.protocol.sasl.conversation import SaslError
from ottla.protocol.sasl.scram_credential import LEAST_ITERATIONS, ScramCredential, credential_of
from ottla.protocol.sasl.server import Accepted, KnownUser
from ottla.protocol.schema import replace

USER = "User:"
MOST_REMEMBERED = 1000


def list_principals(token: DelegationTokenRecord) -> frozenset[str]:
    """Return the principals that may see, renew and expire a token: its owner, its requester and its renewers."""
    return frozenset((token.owner, token.requester, *token.renewers))


def split_principal(principal: str) -> tuple[str, str]:
    """Return type and name of a principal such as `User:alice`."""
    kind, _, name = principal.partition(":")
    return kind, name


class TokenStore(Protocol):
    """Owns the cluster's metadata, and changes it."""

    @property
    def machine(self) -> ClusterMetadata:
        """The metadata with all records that were replayed."""

    def submit(self, event: Callable[[int], Any]) -> Any:
        """Decide a change of the metadata."""


class DelegationTokens:
    """Creates, finds and expires the tokens in the cluster's metadata."""

    def __init__(self, config: BrokerConfig, cluster: TokenStore, clock: Clock) -> None:
        self._config = config
        self._cluster = cluster
        self._clock = clock
        self._random = os.urandom(32)
        self._credentials: dict[tuple[str, str], ScramCredential] = {}

    def hmac_of(self, token_id: str) -> bytes:
        """Return the HMAC of a token. Raise KafkaError if the broker has no secret."""
        secret = self._config.delegation_token_secret_key
        if secret is None:
            raise KafkaError(
                ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED,
                "delegation tokens are disabled: set delegation.token.secret.key",
            )
        return mac(secret.value.encode(), token_id.encode(), "sha512")

    def create(self, owner: str, requester: str, renewers: Sequence[str], max_ms: int) -> DelegationTokenRecord:
        """Create a token that expires. A period of 0 or less selects the maximum."""
        token_id = new_id()
        self.hmac_of(token_id)
        now, most = self._clock.wall_ms(), self._config.delegation_token_max_lifetime_ms
        ends = now + (most if max_ms <= 0 else min(max_ms, most))
        expires = min(ends, now + self._config.delegation_token_expiry_time_ms)
        return self._store(DelegationTokenRecord(owner, requester, tuple(renewers), now, ends, expires, token_id))

    def renew(self, principal: str, proof: bytes, period_ms: int) -> int:
        """Extend a token's lifetime. Return the new expiry."""
        token = self._find_token(principal, proof)
        now = self._clock.wall_ms()
        if token.expiration_timestamp < now:
            raise KafkaError(ErrorCode.DELEGATION_TOKEN_EXPIRED, "the token has expired: create a new one")
        period = self._config.delegation_token_expiry_time_ms if period_ms < 0 else period_ms
        return self._set_expiration(token, min(token.max_timestamp, now + period))

    def expire(self, principal: str, proof: bytes, period_ms: int) -> int:
        """Set the expiry of a token, at once for a negative period. Return the expiry."""
        token = self._find_token(principal, proof)
        now = self._clock.wall_ms()
        if period_ms < 0:
            self._remove([token.token_id])
            return now
        if token.expiration_timestamp < now:
            raise KafkaError(ErrorCode.DELEGATION_TOKEN_EXPIRED, "the token has expired")
        return self._set_expiration(token, min(token.max_timestamp, now + period_ms))

    def seen_by(
        self, principal: str, owners: Sequence[str] | None, may_see: Callable[[DelegationTokenRecord], bool]
    ) -> list[DelegationTokenRecord]:
        """Return the unexpired tokens of these owners, None for all, that `principal` owns or may renew, or that `may_see` allows."""
        self.hmac_of("")
        now = self._clock.wall_ms()
        return [
            token
            for token in self._cluster.machine.tokens.values()
            if token.expiration_timestamp >= now
            and (owners is None or not list_principals(token).isdisjoint(owners))
            and (principal in list_principals(token) or may_see(token))
        ]

    def find_user(self, token_id: str) -> KnownUser | None:
        """Return the user of a token that has not expired."""
        token = self._cluster.machine.tokens.get(token_id)
        if token is None or token.expiration_timestamp <= self._clock.wall_ms():
            return None
        return KnownUser(token.owner.removeprefix(USER), None, float(token.expiration_timestamp))

    def derive_credential(self, token_id: str) -> ScramCredential:
        """Return a credential with the salt of an id, of a token or not, and without keys, which take milliseconds."""
        return ScramCredential(self._salt(self._proof(token_id)), b"", b"", LEAST_ITERATIONS)

    def check(self, mechanism: str, token_id: str, accept: Callable[[ScramCredential], Accepted]) -> Accepted:
        """Return what `accept` makes of the credential of an id, of a token or not. For a thread: it takes milliseconds.

        A credential by which a client has logged in is not computed again for the next right proof. For a wrong proof it is, so that
        refusals take the same time for a token that is used, for one that is not, and for an unknown id.
        """
        remembered = self._credentials.get((mechanism, token_id))
        if remembered is not None:
            with suppress(SaslError):
                return accept(remembered)
        proof = self._proof(token_id)
        credential = credential_of(mechanism, base64.b64encode(proof).decode(), self._salt(proof))
        accepted = accept(credential)
        if len(self._credentials) >= MOST_REMEMBERED:
            self._credentials.clear()
        self._credentials[mechanism, token_id] = credential
        return accepted

    def remove_expired(self) -> None:
        now = self._clock.wall_ms()
        gone = [token.token_id for token in self._cluster.machine.tokens.values() if token.expiration_timestamp < now]
        if gone:
            self._remove(gone)

    def _find_token(self, principal: str, proof: bytes) -> DelegationTokenRecord:
        for token in self._cluster.machine.tokens.values():
            if are_same(self.hmac_of(token.token_id), proof):
                if principal not in list_principals(token):
                    raise KafkaError(
                        ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH,
                        f"{principal} is neither the owner nor a renewer of the token",
                    )
                return token
        self.hmac_of("")
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_NOT_FOUND, "there is no such token")

    def _set_expiration(self, token: DelegationTokenRecord, moment: int) -> int:
        return self._store(replace(token, expiration_timestamp=moment)).expiration_timestamp

    def _store(self, token: DelegationTokenRecord) -> DelegationTokenRecord:
        self._submit(lambda ticket: TokenCreationRequested(ticket, token))
        return token

    def _remove(self, token_ids: Sequence[str]) -> None:
        self._submit(lambda ticket: TokenDeletionRequested(ticket, tuple(token_ids)))

    def _submit(self, event: Callable[[int], Any]) -> None:
        self._cluster.submit(event)

    def _salt(self, proof: bytes) -> bytes:
        return mac(proof, b"salt", "sha256")

    def _proof(self, token_id: str) -> bytes:
        """Return the HMAC of an id, or random bytes if the broker has no secret: then no token can be shown."""
        has_secret = self._config.delegation_token_secret_key is not None
        return self.hmac_of(token_id) if has_secret else mac(self._random, token_id.encode(), "sha512")
