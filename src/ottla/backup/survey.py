"""Read the state of the source through an admin client."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from ottla.backup.manifest import AccessRule, GroupBackup, GroupOffset, GroupType, Quota
from ottla.backup.selection import Selection
from ottla.errors import KafkaError, KafkaTimeoutError, UnsupportedVersionError

if TYPE_CHECKING:
    from ottla.client.admin import Admin

SET_EXPLICITLY = ("DYNAMIC_TOPIC_CONFIG", "DYNAMIC_GROUP_CONFIG")
FIRST_REQUEST_SECONDS = 5.0
TYPES: dict[str, GroupType] = {"classic": "classic", "consumer": "consumer", "share": "share", "streams": "streams"}


class SourceTopic(NamedTuple):
    """A topic of the source."""

    topic_id: str
    partitions: int
    replication_factor: int
    configs: dict[str, str]
    """The explicitly set configs."""
    leaders: tuple[int, ...]
    """The node that leads each partition, -1 without one."""
    is_compacted: bool
    delete_retention_ms: int


class SourceSurvey:
    """Reads topics, groups and access rules; `warn` receives what could not be read."""

    def __init__(self, admin: Admin, selection: Selection, warn: Callable[[str], None]) -> None:
        self._admin = admin
        self._selection = selection
        self._warn = warn

    def cluster_id(self) -> str | None:
        """Return the id of the cluster. This first request names the side in its timeout error."""
        try:
            return self._admin.describe_cluster(FIRST_REQUEST_SECONDS).cluster_id
        except KafkaTimeoutError as error:
            raise KafkaTimeoutError(f"the cluster to back up is not reachable: {error}") from error

    def read_topics(self) -> dict[str, SourceTopic]:
        """Return the selected topics; internal topics are never selected."""
        from ottla.client.admin import ConfigResource

        names = self._selection.choose_topics(self._admin.list_topics(), "the cluster")
        if not names:
            return {}
        described = self._admin.describe_topics(names)
        configs = self._admin.describe_configs([ConfigResource("topic", name) for name in names])
        found = {}
        for name in names:
            entries = configs[ConfigResource("topic", name)]
            effective = {entry.name: entry.value or "" for entry in entries.values()}
            found[name] = SourceTopic(
                str(described[name].topic_id),
                len(described[name].partitions),
                max(len(partition.replicas) for partition in described[name].partitions),
                {e.name: e.value for e in entries.values() if e.source in SET_EXPLICITLY and e.value is not None},
                tuple(partition.leader for partition in described[name].partitions),
                "compact" in effective.get("cleanup.policy", ""),
                int(effective.get("delete.retention.ms") or 86_400_000),
            )
        return found

    def read_groups(self, topics: set[str]) -> dict[str, GroupBackup]:
        """Return the selected groups with their offsets in these topics."""
        listed = {each.group_id: TYPES.get(each.type.lower(), "classic") for each in self._admin.list_groups()}
        found = {}
        for name in self._selection.choose_groups(listed):
            try:
                offsets = [each for each in self._read_offsets(name, listed[name]) if each.topic in topics]
                configs = self._read_group_configs(name)
            except KafkaError as error:
                if error.name == "GROUP_ID_NOT_FOUND":
                    continue  # deleted since it was listed
                self._warn(f"group {name} is not in the backup: {error}")
                continue
            if offsets or (configs and self._selection.is_whole_cluster):
                found[name] = GroupBackup(listed[name], offsets, configs)
        return found

    def _read_offsets(self, name: str, kind: GroupType) -> list[GroupOffset]:
        if kind == "share":
            starts = self._admin.list_share_group_offsets(name)
            return [GroupOffset(*tp, info.start_offset) for tp, info in sorted(starts.items())]
        committed = self._admin.list_consumer_group_offsets(name)
        return [GroupOffset(*tp, at.offset, at.metadata or "") for tp, at in sorted(committed.items())]

    def _read_group_configs(self, name: str) -> dict[str, str]:
        from ottla.client.admin import ConfigResource

        try:
            (entries,) = self._admin.describe_configs([ConfigResource("group", name)]).values()
        except (KafkaError, UnsupportedVersionError):
            return {}  # brokers before 3.8, and users without the permission, have no configs of groups
        return {e.name: e.value for e in entries.values() if e.source in SET_EXPLICITLY and e.value is not None}

    def read_access_rules(self) -> list[AccessRule] | None:
        """Return the access rules, or None if the cluster has no access control or the user may not read it."""
        from ottla.client.admin import AclBindingFilter

        try:
            rules = self._admin.describe_acls(AclBindingFilter())
        except KafkaError as error:
            if error.name != "SECURITY_DISABLED":
                self._warn(f"access rules are not in the backup: {error}")
            return None
        return [
            AccessRule(r.resource_type, r.name, r.principal, r.operation, r.permission, r.pattern_type, r.host)
            for r in sorted(rules)
        ]

    def read_users(self) -> dict[str, list[str]] | None:
        """Return the SCRAM mechanisms of each user, or None if the user of the backup may not read them."""
        try:
            users = self._admin.describe_user_scram_credentials()
        except (KafkaError, UnsupportedVersionError) as error:
            self._warn(f"names of users are not in the backup: {error}")
            return None
        return {name: sorted(mechanisms) for name, mechanisms in sorted(users.items())}

    def read_quotas(self) -> list[Quota] | None:
        """Return the quotas of clients, or None if the user may not read them."""
        try:
            quotas = self._admin.describe_client_quotas()
        except (KafkaError, UnsupportedVersionError) as error:
            self._warn(f"quotas are not in the backup: {error}")
            return None
        return [Quota(e.user, e.client_id, e.ip, dict(values)) for e, values in quotas.items()]
