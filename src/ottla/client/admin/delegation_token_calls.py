"""Delegation tokens: made, renewed, ended, described (KIP-48)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ottla.client.admin.admin_api_driver import AdminApiDriver, controller
from ottla.client.admin.delegation_token import DelegationToken, TokenInformation
from ottla.client.interface.arguments import checked_list, checked_text, checked_whole
from ottla.errors import ErrorCode
from ottla.protocol.messages.create_delegation_token import CreatableRenewers, CreateDelegationTokenRequest
from ottla.protocol.messages.describe_delegation_token import (
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
)
from ottla.protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest
from ottla.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest

THE_BROKERS = -1
MEANINGS: Mapping[int, str] = {
    ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED: "the cluster makes no tokens: it has no delegation.token.secret.key",
    ErrorCode.DELEGATION_TOKEN_NOT_FOUND: "there is no such token, or it has ended",
    ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH: "neither owner, requester nor renewer of the token asks",
    ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED: (
        "who asks has to have logged in, by TLS or SASL, and not by a token itself"
    ),
    ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED: "who asks may have no tokens made for this owner",
    ErrorCode.DELEGATION_TOKEN_EXPIRED: "the token has ended for good",
    ErrorCode.INVALID_PRINCIPAL_TYPE: "owners and renewers are principals of type User",
}
"""The brokers tell codes alone."""


class DelegationTokenCalls:
    """What an admin does with tokens; `Admin` has the same names and says what they do."""

    def __init__(self, driver: AdminApiDriver) -> None:
        self._driver = driver

    def create_delegation_token(
        self, owner: str | None, renewers: Iterable[str], max_lifetime_ms: int, timeout: float | None
    ) -> DelegationToken:
        kind, name = ("", "") if owner is None else principal(owner)
        others = [principal(each) for each in checked_list("renewers", renewers, "['User:bob']")]
        life = checked_span("max_lifetime_ms", max_lifetime_ms)
        request = CreateDelegationTokenRequest(
            kind or None, name or None, [CreatableRenewers(*each) for each in others], life
        )
        told = self._ask(request, timeout)
        info = TokenInformation(
            told.token_id,
            named(told.principal_type, told.principal_name),
            named(told.token_requester_principal_type, told.token_requester_principal_name),
            tuple(named(*each) for each in others),
            told.issue_timestamp_ms,
            told.expiry_timestamp_ms,
            told.max_timestamp_ms,
        )
        return DelegationToken(info, told.hmac)

    def renew_delegation_token(self, hmac: bytes, renew_time_period_ms: int, timeout: float | None) -> int:
        span = checked_span("renew_time_period_ms", renew_time_period_ms)
        return int(self._ask(RenewDelegationTokenRequest(checked_hmac(hmac), span), timeout).expiry_timestamp_ms)

    def expire_delegation_token(self, hmac: bytes, expiry_time_period_ms: int, timeout: float | None) -> int:
        span = checked_span("expiry_time_period_ms", expiry_time_period_ms)
        return int(self._ask(ExpireDelegationTokenRequest(checked_hmac(hmac), span), timeout).expiry_timestamp_ms)

    def describe_delegation_token(self, owners: Iterable[str] | None, timeout: float | None) -> list[DelegationToken]:
        asked = None
        if owners is not None:
            asked = [principal(each) for each in checked_list("owners", owners, "['User:alice']")]
        wanted = None if asked is None else [DescribeDelegationTokenOwner(*each) for each in asked]
        return [token_of(each) for each in self._ask(DescribeDelegationTokenRequest(wanted), timeout).tokens]

    def _ask(self, request: Any, timeout: float | None) -> Any:
        return self._driver.ask_one(controller, request, "the token", timeout, MEANINGS)


def principal(text: Any) -> tuple[str, str]:
    """Its type and its name."""
    kind, colon, name = checked_text("principal", text, "User:alice").partition(":")
    if not (kind and colon and name):
        raise ValueError(f"{text!r} is no principal: write its type and its name, such as 'User:alice'")
    return kind, name


def named(kind: str, name: str) -> str:
    return f"{kind}:{name}" if name else ""


def checked_span(what: str, span: Any) -> int:
    return checked_whole(what, span, "milliseconds, or -1", first=THE_BROKERS)


def checked_hmac(hmac: Any) -> bytes:
    """Told of nobody, right or wrong."""
    if not isinstance(hmac, bytes) or not hmac:
        raise TypeError("hmac: must be the bytes of a token, as in DelegationToken.hmac")
    return hmac


def token_of(told: Any) -> DelegationToken:
    """One that somebody has."""
    info = TokenInformation(
        told.token_id,
        named(told.principal_type, told.principal_name),
        named(told.token_requester_principal_type, told.token_requester_principal_name),
        tuple(named(each.principal_type, each.principal_name) for each in told.renewers),
        told.issue_timestamp,
        told.expiry_timestamp,
        told.max_timestamp,
    )
    return DelegationToken(info, told.hmac)
