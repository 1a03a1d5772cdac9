"""The events that change the metadata of the cluster, one for each request of a client.

Random values, such as ids, are in the event: the caller draws them, so that the decision is deterministic.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import UUID

from msgspec import Struct, field

from ottla.config import Option
from ottla.coordination.access.acl import Acl, AclFilter
from ottla.coordination.cluster.group_configs import NO_BOUNDS, Bounds
from ottla.coordination.cluster.records import DelegationTokenRecord
from ottla.protocol.messages import alter_configs, incremental_alter_configs
from ottla.protocol.messages.alter_client_quotas import RequestEntryData
from ottla.protocol.messages.alter_user_scram_credentials import ScramCredentialDeletion, ScramCredentialUpsertion
from ottla.protocol.messages.delete_topics import DeleteTopicState
from ottla.protocol.messages.update_features import FeatureUpdateKey


class TopicDeletionRequested(Struct, frozen=True):
    """DeleteTopics. The reply has a DeletableTopicResult per topic, in order."""

    ticket: int
    topics: Sequence[DeleteTopicState]


class ConfigChangeRequested(Struct, frozen=True):
    """IncrementalAlterConfigs. The reply has a Refusal or None per resource, in order."""

    ticket: int
    resources: Sequence[incremental_alter_configs.AlterConfigsResource]
    broker_configs: Mapping[str, str] = field(default_factory=dict)
    """The defaults of topic configs that the broker's settings change. APPEND and SUBTRACT start from these."""
    validate_only: bool = False
    node_id: int | None = 1
    """The id of the only broker that may get configs of its own; None if every broker may: on a controller."""
    broker_options: Mapping[str, Option] = field(default_factory=dict)
    """The settings of the broker that can be changed at run time, by their dotted names."""
    group_bounds: Bounds = field(default_factory=lambda: NO_BOUNDS)
    """The limits of group configs in the broker's settings."""


class ConfigReplacementRequested(Struct, frozen=True):
    """AlterConfigs. The reply is as for ConfigChangeRequested."""

    ticket: int
    resources: Sequence[alter_configs.AlterConfigsResource]
    validate_only: bool = False
    node_id: int | None = 1
    broker_options: Mapping[str, Option] = field(default_factory=dict)
    group_bounds: Bounds = field(default_factory=lambda: NO_BOUNDS)
    """This field and the two before are as for ConfigChangeRequested."""


class FeatureChangeRequested(Struct, frozen=True):
    """UpdateFeatures. The reply is None, a Refusal of the whole request, or Refusals by feature."""

    ticket: int
    updates: Sequence[FeatureUpdateKey]
    validate_only: bool = False
    is_per_feature: bool = False
    """True if the response has a result per feature: an unsupported feature is then rejected by itself."""


class AclCreationRequested(Struct, frozen=True):
    """CreateAcls. The reply has a Refusal or None per ACL, in order."""

    ticket: int
    acls: Sequence[Acl]
    acl_ids: Sequence[UUID]
    """A new id for each ACL."""


class AclDeletionRequested(Struct, frozen=True):
    """DeleteAcls. The reply has, per filter in order, a Refusal or the matching ACLs."""

    ticket: int
    filters: Sequence[AclFilter]


class QuotaChangeRequested(Struct, frozen=True):
    """AlterClientQuotas. The reply has a Refusal or None per entity, in order."""

    ticket: int
    entries: Sequence[RequestEntryData]
    validate_only: bool


class ScramChangeRequested(Struct, frozen=True):
    """AlterUserScramCredentials. The reply has an AlterUserScramCredentialsResult per user."""

    ticket: int
    deletions: Sequence[ScramCredentialDeletion]
    upsertions: Sequence[ScramCredentialUpsertion]


class TokenCreationRequested(Struct, frozen=True):
    """Create or renew a delegation token. The reply is None."""

    ticket: int
    token: DelegationTokenRecord


class TokenDeletionRequested(Struct, frozen=True):
    """Remove delegation tokens that have expired. The reply is None."""

    ticket: int
    token_ids: Sequence[str]


Event = (
    TopicDeletionRequested
    | ConfigChangeRequested
    | ConfigReplacementRequested
    | FeatureChangeRequested
    | AclCreationRequested
    | AclDeletionRequested
    | QuotaChangeRequested
    | ScramChangeRequested
    | TokenCreationRequested
    | TokenDeletionRequested
)
"""The events of this module; `controller/client_changes` decides them."""
