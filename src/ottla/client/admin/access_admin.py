"""Who may do what, and how much, as an admin's methods."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ottla.client.admin.acl import AclBinding, AclBindingFilter
    from ottla.client.admin.admin_calls import AdminCalls
    from ottla.client.admin.client_quota import ClientQuotaEntity
    from ottla.client.admin.delegation_token import DelegationToken
    from ottla.client.admin.scram import UserScramCredentialDeletion, UserScramCredentialUpsertion


class AccessAdmin:
    """What `Admin` does with rules, users, tokens and quotas."""

    _calls: AdminCalls

    def create_acls(self, acls: Iterable[AclBinding], timeout: float | None = None) -> None:
        """Keep rules of who may, or may not, do what; one that is kept already is no error."""
        self._calls.acls.create_acls(acls, timeout)

    def describe_acls(self, filter: AclBindingFilter, timeout: float | None = None) -> list[AclBinding]:
        """The rules that a filter means; `AclBindingFilter()` means all."""
        return self._calls.acls.describe_acls(filter, timeout)

    def delete_acls(self, filters: Iterable[AclBindingFilter], timeout: float | None = None) -> list[AclBinding]:
        """Delete every rule that one of the filters means, and return them."""
        return self._calls.acls.delete_acls(filters, timeout)

    def describe_user_scram_credentials(
        self, users: Iterable[str] | None = None, timeout: float | None = None
    ) -> dict[str, dict[str, int]]:
        """Who may log in by SCRAM, these users or all: by which mechanisms, and how often the password is hashed for each."""
        return self._calls.scram.describe_user_scram_credentials(users, timeout)

    def alter_user_scram_credentials(
        self,
        alterations: Iterable[UserScramCredentialUpsertion | UserScramCredentialDeletion],
        timeout: float | None = None,
    ) -> None:
        """Give users passwords, and take them away. A password is hashed here; the broker is told the hash (KIP-554)."""
        self._calls.scram.alter_user_scram_credentials(alterations, timeout)

    def create_delegation_token(
        self,
        owner: str | None = None,
        renewers: Iterable[str] = (),
        max_lifetime_ms: int = -1,
        timeout: float | None = None,
    ) -> DelegationToken:
        """Make something to log in by that is no password: for who asks, or for an owner such as `User:alice` (KIP-48).

        -1 lets it live as long as the brokers' `delegation.token.max.lifetime.ms`.
        """
        return self._calls.tokens.create_delegation_token(owner, renewers, max_lifetime_ms, timeout)

    def renew_delegation_token(self, hmac: bytes, renew_time_period_ms: int = -1, timeout: float | None = None) -> int:
        """Let a token live on, by -1 as long as `delegation.token.expiry.time.ms`; when it ends now, in ms since 1970."""
        return self._calls.tokens.renew_delegation_token(hmac, renew_time_period_ms, timeout)

    def expire_delegation_token(
        self, hmac: bytes, expiry_time_period_ms: int = -1, timeout: float | None = None
    ) -> int:
        """Have a token end after so many ms, by -1 at once; when it ends, in ms since 1970."""
        return self._calls.tokens.expire_delegation_token(hmac, expiry_time_period_ms, timeout)

    def describe_delegation_token(
        self, owners: Iterable[str] | None = None, timeout: float | None = None
    ) -> list[DelegationToken]:
        """The tokens of these owners, or all, that who asks may see."""
        return self._calls.tokens.describe_delegation_token(owners, timeout)

    def describe_client_quotas(
        self, entity: ClientQuotaEntity | None = None, timeout: float | None = None
    ) -> dict[ClientQuotaEntity, dict[str, float]]:
        """What users, client ids and addresses are limited to: all that are, or one alone."""
        return self._calls.quotas.describe_client_quotas(entity, timeout)

    def alter_client_quotas(
        self,
        changes: Mapping[ClientQuotaEntity, Mapping[str, float | None]],
        timeout: float | None = None,
        *,
        validate_only: bool = False,
    ) -> None:
        """Limit what somebody may use: producer_byte_rate, consumer_byte_rate, request_percentage, controller_mutation_rate;
        of an address connection_creation_rate. None lifts a limit.
        """
        self._calls.quotas.alter_client_quotas(changes, timeout, validate_only=validate_only)
