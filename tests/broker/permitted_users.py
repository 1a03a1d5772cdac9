"""Users who are allowed one thing, or all but one: with each of them every API is tried."""

from __future__ import annotations

from ottla.broker.permissions import PERMISSIONS
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
"""What each user is allowed, on every resource of the kind."""


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
