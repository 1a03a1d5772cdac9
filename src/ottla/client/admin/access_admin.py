"""ACLs, SCRAM users, delegation tokens and quotas as methods of `Admin`."""

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
    """The methods of `Admin` for ACLs, users, tokens and quotas."""

    _calls: AdminCalls

    def create_acls(self, acls: Iterable[AclBinding], timeout: float | None = None) -> None:
        """Create ACLs. An ACL that exists already is not an error."""
        self._calls.acls.create_acls(acls, timeout)

    def describe_acls(self, filter: AclBindingFilter, timeout: float | None = None) -> list[AclBinding]:
        """Return the ACLs that match a filter; `AclBindingFilter()` matches all."""
        return self._calls.acls.describe_acls(filter, timeout)

    def delete_acls(self, filters: Iterable[AclBindingFilter], timeout: float | None = None) -> list[AclBinding]:
        """Delete every ACL that matches one of the filters, and return the deleted ones."""
        return self._calls.acls.delete_acls(filters, timeout)

    def describe_user_scram_credentials(
        self, users: Iterable[str] | None = None, timeout: float | None = None
    ) -> dict[str, dict[str, int]]:
        """Return the SCRAM mechanisms of these users, or of all, with the number of hash iterations of each."""
        return self._calls.scram.describe_user_scram_credentials(users, timeout)

    def alter_user_scram_credentials(
        self,
        alterations: Iterable[UserScramCredentialUpsertion | UserScramCredentialDeletion],
        timeout: float | None = None,
    ) -> None:
        """Set or delete passwords of users. Passwords are hashed here; the broker receives only the hash (KIP-554)."""
        self._calls.scram.alter_user_scram_credentials(alterations, timeout)

    def create_delegation_token(
        self,
        owner: str | None = None,
        renewers: Iterable[str] = (),
        max_lifetime_ms: int = -1,
        timeout: float | None = None,
    ) -> DelegationToken:
        """Create a delegation token for the authenticated user, or for an owner such as `User:alice` (KIP-48).

        With -1 its maximum lifetime is the brokers' `delegation.token.max.lifetime.ms`.
        """
        return self._calls.tokens.create_delegation_token(owner, renewers, max_lifetime_ms, timeout)

    def renew_delegation_token(self, hmac: bytes, renew_time_period_ms: int = -1, timeout: float | None = None) -> int:
        """Extend a token, with -1 by `delegation.token.expiry.time.ms`. Return its expiry in ms since 1970."""
        return self._calls.tokens.renew_delegation_token(hmac, renew_time_period_ms, timeout)

    def expire_delegation_token(
        self, hmac: bytes, expiry_time_period_ms: int = -1, timeout: float | None = None
    ) -> int:
        """Expire a token after this many ms, with -1 at once. Return its expiry in ms since 1970."""
        return self._calls.tokens.expire_delegation_token(hmac, expiry_time_period_ms, timeout)

    def describe_delegation_token(
        self, owners: Iterable[str] | None = None, timeout: float | None = None
    ) -> list[DelegationToken]:
        """Return the tokens of these owners, or all, that the authenticated user may see."""
        return self._calls.tokens.describe_delegation_token(owners, timeout)

    def describe_client_quotas(
        self, entity: ClientQuotaEntity | None = None, timeout: float | None = None
    ) -> dict[ClientQuotaEntity, dict[str, float]]:
        """Return the quotas of users, client ids and addresses: all of them, or those of one entity."""
        return self._calls.quotas.describe_client_quotas(entity, timeout)

    def alter_client_quotas(
        self,
        changes: Mapping[ClientQuotaEntity, Mapping[str, float | None]],
        timeout: float | None = None,
        *,
        validate_only: bool = False,
    ) -> None:
        """Set or delete quotas of users, client ids and addresses.

        They are producer_byte_rate, consumer_byte_rate, request_percentage and controller_mutation_rate;
        connection_creation_rate for an address. None deletes a quota.
        """
        self._calls.quotas.alter_client_quotas(changes, timeout, validate_only=validate_only)
