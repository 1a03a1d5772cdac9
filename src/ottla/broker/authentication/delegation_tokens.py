"""Delegation tokens (KIP-48): who may have one, for how long, and how one is logged in by.

A token is an id and its HMAC, made with a secret of the broker's that is in no log. It is logged in by with SCRAM, the id for a
name and the HMAC for a password.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Protocol

from ottla.broker.settings.config import BrokerConfig
from ottla.clock import Clock
from ottla.coordination.cluster.events import TokenRequested, TokensUnwanted
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


def concerned(token: DelegationTokenRecord) -> frozenset[str]:
    """Who may see a token, renew it and have it end: its owner, who asked for it, and who was named then."""
    return frozenset((token.owner, token.requester, *token.renewers))


def pair(principal: str) -> tuple[str, str]:
    """`User:alice` as the protocol has it, in two fields."""
    kind, _, name = principal.partition(":")
    return kind, name


class Keeper(Protocol):
    """Who has the metadata, and has them changed."""

    @property
    def machine(self) -> ClusterMetadata:
        """As they are by now."""

    def ask(self, event: Callable[[int], Any]) -> Any:
        """Have it decided what becomes of them."""


class DelegationTokens:
    """Makes, finds and ends the tokens that are in the cluster's metadata."""

    def __init__(self, config: BrokerConfig, cluster: Keeper, clock: Clock) -> None:
        self._config = config
        self._cluster = cluster
        self._clock = clock
        self._random = os.urandom(32)
        self._credentials: dict[tuple[str, str], ScramCredential] = {}

    def hmac_of(self, token_id: str) -> bytes:
        """What proves a token; KafkaError where the broker has no secret to make it with."""
        secret = self._config.delegation_token_secret_key
        if secret is None:
            raise KafkaError(
                ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED, "delegation tokens need delegation.token.secret.key"
            )
        return mac(secret.value.encode(), token_id.encode(), "sha512")

    def create(self, owner: str, requester: str, renewers: Sequence[str], max_ms: int) -> DelegationTokenRecord:
        """A token that ends by itself; a length of 0 or less is as long as may be."""
        token_id = new_id()
        self.hmac_of(token_id)
        now, most = self._clock.wall_ms(), self._config.delegation_token_max_lifetime_ms
        ends = now + (most if max_ms <= 0 else min(max_ms, most))
        expires = min(ends, now + self._config.delegation_token_expiry_time_ms)
        return self._keep(DelegationTokenRecord(owner, requester, tuple(renewers), now, ends, expires, token_id))

    def renew(self, principal: str, proof: bytes, period_ms: int) -> int:
        """Keep a token for longer; when it ends then."""
        token = self._of(principal, proof)
        now = self._clock.wall_ms()
        if token.expiration_timestamp < now:
            raise KafkaError(ErrorCode.DELEGATION_TOKEN_EXPIRED, "the token has ended; have another one made")
        period = self._config.delegation_token_expiry_time_ms if period_ms < 0 else period_ms
        return self._end_at(token, min(token.max_timestamp, now + period))

    def expire(self, principal: str, proof: bytes, period_ms: int) -> int:
        """Have a token end, at once where the period is negative; when it ends then."""
        token = self._of(principal, proof)
        now = self._clock.wall_ms()
        if period_ms < 0:
            self._remove([token.token_id])
            return now
        if token.expiration_timestamp < now:
            raise KafkaError(ErrorCode.DELEGATION_TOKEN_EXPIRED, "the token has ended")
        return self._end_at(token, min(token.max_timestamp, now + period_ms))

    def seen_by(
        self, principal: str, owners: Sequence[str] | None, may_see: Callable[[DelegationTokenRecord], bool]
    ) -> list[DelegationTokenRecord]:
        """The tokens that concern one of these owners, None for all, and that somebody has, may renew or `may_see`."""
        self.hmac_of("")
        now = self._clock.wall_ms()
        return [
            token
            for token in self._cluster.machine.tokens.values()
            if token.expiration_timestamp >= now
            and (owners is None or not concerned(token).isdisjoint(owners))
            and (principal in concerned(token) or may_see(token))
        ]

    def known(self, token_id: str) -> KnownUser | None:
        """Return the user of a token that has not expired."""
        token = self._cluster.machine.tokens.get(token_id)
        if token is None or token.expiration_timestamp <= self._clock.wall_ms():
            return None
        return KnownUser(token.owner.removeprefix(USER), None, float(token.expiration_timestamp))

    def unstretched(self, token_id: str) -> ScramCredential:
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

    def sweep(self) -> None:
        """Clear away those that have ended."""
        now = self._clock.wall_ms()
        gone = [token.token_id for token in self._cluster.machine.tokens.values() if token.expiration_timestamp < now]
        if gone:
            self._remove(gone)

    def _of(self, principal: str, proof: bytes) -> DelegationTokenRecord:
        for token in self._cluster.machine.tokens.values():
            if are_same(self.hmac_of(token.token_id), proof):
                if principal not in concerned(token):
                    raise KafkaError(
                        ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH,
                        f"the token is not {principal}'s, nor to be renewed by it",
                    )
                return token
        self.hmac_of("")
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_NOT_FOUND, "there is no such token")

    def _end_at(self, token: DelegationTokenRecord, moment: int) -> int:
        return self._keep(replace(token, expiration_timestamp=moment)).expiration_timestamp

    def _keep(self, token: DelegationTokenRecord) -> DelegationTokenRecord:
        self._ask(lambda ticket: TokenRequested(ticket, token))
        return token

    def _remove(self, token_ids: Sequence[str]) -> None:
        self._ask(lambda ticket: TokensUnwanted(ticket, tuple(token_ids)))

    def _ask(self, event: Callable[[int], Any]) -> None:
        self._cluster.ask(event)

    def _salt(self, proof: bytes) -> bytes:
        return mac(proof, b"salt", "sha256")

    def _proof(self, token_id: str) -> bytes:
        """Return the HMAC of an id, or random bytes if the broker has no secret: then no token can be shown."""
        has_secret = self._config.delegation_token_secret_key is not None
        return self.hmac_of(token_id) if has_secret else mac(self._random, token_id.encode(), "sha512")
