"""One access control entry, and filters over entries."""

from __future__ import annotations

from functools import lru_cache
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import NamedTuple

from ottla.protocol.acl import WILDCARD, Operation, PatternType, PermissionType, ResourceType

EVERYBODY = "User:*"


class Acl(NamedTuple):
    """An entry that allows or denies one operation on a resource; entries with equal fields are the same."""

    resource_type: int
    name: str
    pattern_type: int
    principal: str
    host: str
    operation: int
    permission: int

    def is_covering(self, resource_type: int, name: str) -> bool:
        """Return True if the entry applies to that resource."""
        if self.resource_type != resource_type:
            return False
        if self.pattern_type == PatternType.PREFIXED:
            return name.startswith(self.name)
        return self.name in (name, WILDCARD)

    def is_for(self, principal: str, host: str) -> bool:
        if self.principal not in (principal, EVERYBODY):
            return False
        return self.host in (host, WILDCARD) or ("/" in self.host and is_in_range(host, self.host))


class AclFilter(NamedTuple):
    """A filter of entries; None and ANY match everything, MATCH every pattern that covers the name."""

    resource_type: int = ResourceType.ANY
    name: str | None = None
    pattern_type: int = PatternType.ANY
    principal: str | None = None
    host: str | None = None
    operation: int = Operation.ANY
    permission: int = PermissionType.ANY

    def is_match(self, acl: Acl) -> bool:
        return (
            self.resource_type in (ResourceType.ANY, acl.resource_type)
            and self._is_name_match(acl)
            and self.principal in (None, acl.principal)
            and self.host in (None, acl.host)
            and self.operation in (Operation.ANY, acl.operation)
            and self.permission in (PermissionType.ANY, acl.permission)
        )

    def _is_name_match(self, acl: Acl) -> bool:
        if self.pattern_type not in (PatternType.ANY, PatternType.MATCH, acl.pattern_type):
            return False
        if self.name is None:
            return True
        if self.pattern_type == PatternType.MATCH:
            return acl.is_covering(acl.resource_type, self.name)
        return self.name == acl.name


def is_in_range(host: str, cidr: str) -> bool:
    """Return True if an address is in a range, such as `10.0.0.0/8` or `2001:db8::/32`. A malformed range contains nothing."""
    addresses = range_of(cidr)
    try:
        return addresses is not None and ip_address(host) in addresses
    except ValueError:
        return False


@lru_cache(maxsize=1024)
def range_of(cidr: str) -> IPv4Network | IPv6Network | None:
    """Return the addresses of a range in CIDR notation; None if it is malformed.

    The part after the slash is a number of bits: Kafka accepts no netmask there.
    """
    address, _, bits = cidr.partition("/")
    if not (bits.isascii() and bits.isdigit()):
        return None
    try:
        return ip_network((address, int(bits)), strict=False)
    except ValueError:
        return None


def is_principal(text: str) -> bool:
    """Return True if the text has a type and a name, as `User:alice`; the name may contain colons."""
    kind, colon, name = text.partition(":")
    return bool(kind and colon and name)
