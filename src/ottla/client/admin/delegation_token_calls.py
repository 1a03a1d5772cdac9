"""Create, renew, expire and describe delegation tokens (KIP-48)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ottla.client.admin.admin_api_driver import AdminApiDriver, lookup_controller
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

BROKER_DEFAULT = -1
MEANINGS: Mapping[int, str] = {
    ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED: "delegation tokens are disabled: set delegation.token.secret.key on the brokers",
    ErrorCode.DELEGATION_TOKEN_NOT_FOUND: "there is no such token, or it has expired",
    ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH: "the user is not the owner, requester or renewer of the token",
    ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED: (
        "the client must authenticate with TLS or SASL, and not with a token"
    ),
    ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED: "the user is not authorized to create tokens for this owner",
    ErrorCode.DELEGATION_TOKEN_EXPIRED: "the token has reached its maximum lifetime",
    ErrorCode.INVALID_PRINCIPAL_TYPE: "owners and renewers must be principals of type User",
}
"""Meanings of the error codes; brokers send codes without messages."""


class DelegationTokenCalls:
    """Implements the token methods of `Admin`, which documents them."""

    def __init__(self, driver: AdminApiDriver) -> None:
        self._driver = driver

    def create_delegation_token(
        self, owner: str | None, renewers: Iterable[str], max_lifetime_ms: int, timeout: float | None
    ) -> DelegationToken:
        kind, name = ("", "") if owner is None else parse_principal(owner)
        others = [parse_principal(each) for each in checked_list("renewers", renewers, "['User:bob']")]
        lifetime_ms = checked_span("max_lifetime_ms", max_lifetime_ms)
        request = CreateDelegationTokenRequest(
            kind or None, name or None, [CreatableRenewers(*each) for each in others], lifetime_ms
        )
        response = self._send(request, timeout)
        info = TokenInformation(
            response.token_id,
            format_principal(response.principal_type, response.principal_name),
            format_principal(response.token_requester_principal_type, response.token_requester_principal_name),
            tuple(format_principal(*each) for each in others),
            response.issue_timestamp_ms,
            response.expiry_timestamp_ms,
            response.max_timestamp_ms,
        )
        return DelegationToken(info, response.hmac)

    def renew_delegation_token(self, hmac: bytes, renew_time_period_ms: int, timeout: float | None) -> int:
        span = checked_span("renew_time_period_ms", renew_time_period_ms)
        return int(self._send(RenewDelegationTokenRequest(checked_hmac(hmac), span), timeout).expiry_timestamp_ms)

    def expire_delegation_token(self, hmac: bytes, expiry_time_period_ms: int, timeout: float | None) -> int:
        span = checked_span("expiry_time_period_ms", expiry_time_period_ms)
        return int(self._send(ExpireDelegationTokenRequest(checked_hmac(hmac), span), timeout).expiry_timestamp_ms)

    def describe_delegation_token(self, owners: Iterable[str] | None, timeout: float | None) -> list[DelegationToken]:
        requested = None
        if owners is not None:
            requested = [parse_principal(each) for each in checked_list("owners", owners, "['User:alice']")]
        wanted = None if requested is None else [DescribeDelegationTokenOwner(*each) for each in requested]
        return [parse_token(each) for each in self._send(DescribeDelegationTokenRequest(wanted), timeout).tokens]

    def _send(self, request: Any, timeout: float | None) -> Any:
        return self._driver.send_one(lookup_controller, request, "the token", timeout, MEANINGS)


def parse_principal(text: Any) -> tuple[str, str]:
    """Split a principal into type and name."""
    kind, colon, name = checked_text("principal", text, "User:alice").partition(":")
    if not (kind and colon and name):
        raise ValueError(f"{text!r} is not a principal: write type and name, such as 'User:alice'")
    return kind, name


def format_principal(kind: str, name: str) -> str:
    return f"{kind}:{name}" if name else ""


def checked_span(what: str, span: Any) -> int:
    return checked_whole(what, span, "milliseconds, or -1", first=BROKER_DEFAULT)


def checked_hmac(hmac: Any) -> bytes:
    """Return the hmac. The error does not contain the value, because it is a secret."""
    if not isinstance(hmac, bytes) or not hmac:
        raise TypeError("hmac: must be the bytes of a token, as in DelegationToken.hmac")
    return hmac


def parse_token(response: Any) -> DelegationToken:
    """Return a token of a response."""
    info = TokenInformation(
        response.token_id,
        format_principal(response.principal_type, response.principal_name),
        format_principal(response.token_requester_principal_type, response.token_requester_principal_name),
        tuple(format_principal(each.principal_type, each.principal_name) for each in response.renewers),
        response.issue_timestamp,
        response.expiry_timestamp,
        response.max_timestamp,
    )
    return DelegationToken(info, response.hmac)
