"""Query and change the cluster that a backup is restored into."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ottla.backup.manifest import AccessRule, GroupBackup, Quota, TopicBackup
from ottla.errors import KafkaError, KafkaTimeoutError
from ottla.model import OffsetAndMetadata, TopicPartition

if TYPE_CHECKING:
    from ottla.client.admin import Admin

FIRST_REQUEST_SECONDS = 5.0
CREATION_SECONDS = 30.0
LARGEST_MESSAGE = 1 << 30
IMPORT_CONFIGS: dict[str, str] = {
    "cleanup.policy": "delete",
    "retention.ms": "-1",
    "retention.bytes": "-1",
    "message.timestamp.type": "CreateTime",
    "message.timestamp.before.max.ms": "9223372036854775807",
    "message.timestamp.after.max.ms": "9223372036854775807",
    "max.message.bytes": str(LARGEST_MESSAGE),
}
"""The configs of a topic while its records are restored: timestamps are kept, nothing is deleted or rejected."""


class RestoreTarget:
    """Creates topics and sets configs, groups' offsets, access rules and quotas; `warn` receives what was rejected."""

    def __init__(self, admin: Admin, warn: Callable[[str], None]) -> None:
        self._admin = admin
        self._warn = warn

    def count_brokers(self) -> int:
        """Return the number of brokers. This first request names the side in its timeout error."""
        try:
            return len(self._admin.describe_cluster(FIRST_REQUEST_SECONDS).nodes)
        except KafkaTimeoutError as error:
            raise KafkaTimeoutError(f"the cluster to restore into is not reachable: {error}") from error

    def count_partitions(self, names: Iterable[str]) -> dict[str, int]:
        """Return the topics that exist, with their numbers of partitions."""
        known = sorted(set(names) & self._admin.list_topics(internal=True).keys())
        described = self._admin.describe_topics(known) if known else {}
        return {name: len(topic.partitions) for name, topic in described.items()}

    def prepare_topic(
        self, name: str, topic: TopicBackup, existing: int | None, replication_factor: int, *, with_configs: bool
    ) -> None:
        """Create a topic or add partitions to it, with the configs for an import."""
        from ottla.client.admin import ConfigResource, NewTopic

        count = len(topic.partitions)
        if existing is None:
            self._admin.create_topics([NewTopic(name, count, replication_factor, IMPORT_CONFIGS)], CREATION_SECONDS)
            return
        if existing < count:
            self._admin.create_partitions({name: count}, CREATION_SECONDS)
        if with_configs:
            self._admin.alter_configs({ConfigResource("topic", name): IMPORT_CONFIGS})

    def is_in_import(self, name: str) -> bool:
        """Return True if a topic has the configs of an import, which an interrupted restore has left."""
        from ottla.client.admin import ConfigResource

        (entries,) = self._admin.describe_configs([ConfigResource("topic", name)]).values()
        explicit = {entry.name: entry.value for entry in entries.values() if entry.source == "DYNAMIC_TOPIC_CONFIG"}
        return IMPORT_CONFIGS.items() <= explicit.items()

    def finish_topic(self, name: str, configs: Mapping[str, str]) -> None:
        """Set the configs of the backup, and reset those of the import."""
        from ottla.client.admin import ConfigResource

        resource = ConfigResource("topic", name)
        resets: dict[str, Any] = dict.fromkeys(IMPORT_CONFIGS)
        try:
            self._admin.alter_configs({resource: {**resets, **configs}})
        except KafkaError as error:
            if error.name not in ("INVALID_CONFIG", "INVALID_REQUEST", "POLICY_VIOLATION"):
                raise
            self._admin.alter_configs({resource: {name: configs.get(name) for name in resets}})
            for config, value in configs.items():
                self._alter_config(resource, config, value)

    def _alter_config(self, resource: Any, config: str, value: str) -> None:
        try:
            self._admin.alter_configs({resource: {config: value}})
        except KafkaError as error:
            self._warn(f"{resource.kind} {resource.name}: {config}={value} is not restored: {error}")

    def delete_records_before(self, tp: TopicPartition, offset: int) -> None:
        """Move the start of a partition's log to an offset."""
        self._admin.delete_records({tp: offset})

    def restore_group(self, name: str, group: GroupBackup, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> bool:
        """Set the offsets and configs of a group. Return False if the cluster rejects them, with a warning."""
        from ottla.client.admin import ConfigResource

        for config, value in group.configs.items():
            self._alter_config(ConfigResource("group", name), config, value)
        if not offsets:
            return True
        try:
            if group.type == "share":
                self._admin.alter_share_group_offsets(name, {tp: at.offset for tp, at in offsets.items()})
            else:
                self._admin.alter_consumer_group_offsets(name, offsets)
        except KafkaError as error:
            remedy = (
                "stop its members and restore again with --only-groups"
                if error.name in ("UNKNOWN_MEMBER_ID", "NON_EMPTY_GROUP", "GROUP_SUBSCRIBED_TO_TOPIC")
                else "restore again with --only-groups when the cause is removed"
            )
            self._warn(f"the offsets of group {name} are not restored: {error}; {remedy}")
            return False
        return True

    def warn_of_users(self, users: Mapping[str, list[str]]) -> None:
        """Report users without a password in the target: it has to be set again."""
        known = self._admin.describe_user_scram_credentials() if users else {}
        lacking = [
            f"{user} ({', '.join(missing)})"
            for user, mechanisms in users.items()
            if (missing := [each for each in mechanisms if each not in known.get(user, {})])
        ]
        if lacking:
            self._warn(f"passwords are not in a backup; set them again with ottla users add: {', '.join(lacking)}")

    def restore_access(self, rules: Iterable[AccessRule], quotas: Iterable[Quota]) -> tuple[int, int]:
        """Create access rules and set quotas; return their numbers."""
        from ottla.client.admin import AclBinding, ClientQuotaEntity

        bindings = [
            AclBinding(r.resource_type, r.name, r.principal, r.operation, r.permission, r.pattern_type, r.host)
            for r in rules
        ]
        if bindings:
            self._admin.create_acls(bindings)
        entities = {ClientQuotaEntity(each.user, each.client_id, each.ip): each.values for each in quotas}
        if entities:
            self._admin.alter_client_quotas(entities)
        return len(bindings), len(entities)
