"""Users with one permission, or all but one, that try every API."""

from __future__ import annotations

from ottla.broker.apis.permissions import PERMISSIONS
from ottla.coordination.access.acl import Acl
from ottla.protocol.acl import CLUSTER_NAME, Operation, PatternType, PermissionType, ResourceType

Grant = tuple[Operation, ResourceType]
GRANTS: list[Grant] = sorted(
    {(operation, need.kind) for row in PERMISSIONS.values() for need in row for operation in need.operations}
)
"""Everything that any API needs."""


def called(grant: Grant) -> str:
    operation, kind = grant
    return f"{operation.name}-{kind.name}".lower().replace("_", "")


USERS: dict[str, list[Grant]] = {
    "nobody": [],
    "everything": GRANTS,
    **{f"only-{called(grant)}": [grant] for grant in GRANTS},
    **{f"all-but-{called(grant)}": [each for each in GRANTS if each != grant] for grant in GRANTS},
}
"""The permissions of each user on every resource of the type."""


def acls(user: str) -> list[Acl]:
    """The rules that let a user do that, and no more."""
    return [
        Acl(
            kind,
            CLUSTER_NAME if kind is ResourceType.CLUSTER else "*",
            PatternType.LITERAL,
            f"User:{user}",
            "*",
            operation,
            PermissionType.ALLOW,
        )
        for operation, kind in USERS[user]
    ]
