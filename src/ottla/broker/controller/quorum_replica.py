"""Construction of a controller's Raft replica from the settings and the metadata directory."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from ottla.broker.controller.controller_apis import KRAFT_VERSIONS
from ottla.broker.controller.quorum_log import QuorumLog
from ottla.broker.settings.config import BrokerConfig
from ottla.broker.settings.endpoints import ANY_HOST, read_controllers
from ottla.broker.settings.quorum_settings import read_voters
from ottla.clock import Clock
from ottla.coordination.quorum.config import QuorumConfig
from ottla.coordination.quorum.log_shape import LogShape
from ottla.coordination.quorum.observer import Address
from ottla.coordination.quorum.raft import Raft
from ottla.coordination.quorum.state import ElectionState
from ottla.coordination.quorum.voter_changes import OwnEntry
from ottla.coordination.quorum.voters import NO_VOTERS, ReplicaKey, VoterSet
from ottla.coordination.quorum.voters_record import Endpoint, KRaftVersionFeature, Voter
from ottla.errors import ConfigError, CorruptRecordError
from ottla.kafka_id import id_of
from ottla.storage.directory.meta_properties import MetaProperties
from ottla.storage.state_log.quorum_state import FILE_NAME as PROMISES
from ottla.storage.state_log.quorum_state import lost_vote_error
from ottla.storage.state_log.voter import SoleVoter as SoleVoter

logger = logging.getLogger(__name__)
FIRST_BOOTSTRAP = -2
"""Placeholder id for the first of `controller.quorum.bootstrap.servers`, as its node id is not known.

The others follow downwards.
"""


def fixed_voters(config: BrokerConfig) -> VoterSet:
    """Return the voters of the settings, by node id alone; none for a node without controllers in its settings."""
    if config.is_alone:
        return NO_VOTERS
    name = config.controller_listener_names[0].upper()
    return VoterSet(
        Voter(
            each.node_id,
            endpoints=[Endpoint(name, each.host, each.port)],
            k_raft_version_feature=KRaftVersionFeature(0, 1),
        )
        for each in read_voters(config.controller_quorum_voters)
    )


def sole_voter(config: BrokerConfig, meta: MetaProperties) -> SoleVoter | None:
    """Return this node as the only voter, if it is the only node of its cluster."""
    return SoleVoter(config.node_id, id_of(meta.directory_id)) if config.is_alone else None


def ensure_sole_voter(shape: LogShape, me: ReplicaKey, log: QuorumLog) -> None:
    """Raise ConfigError if the log has other voters."""
    others = sorted(shape.voters.ids - {me.id})
    if others:
        raise ConfigError(
            f"{log.directory} belongs to a cluster in which {', '.join(map(str, others))} vote as well: set process.roles, "
            "controller.listener.names and controller.quorum.bootstrap.servers of that cluster, or use another directory"
        )


def make_raft(
    config: BrokerConfig,
    meta: MetaProperties,
    log: QuorumLog,
    clock: Clock,
    chance: float,
    bound: Mapping[str, tuple[str, int]],
) -> Raft:
    """Return the Raft state machine at its start; `bound` are its listeners. ConfigError if no voter is configured."""
    me = ReplicaKey(config.node_id, id_of(meta.directory_id))
    shape, bootstrap = log.shape(), list_bootstrap_servers(config)
    if not shape.voters and not bootstrap:
        raise ConfigError(
            f"no voters are configured: neither in {log.directory}, nor controller.quorum.voters, nor "
            "controller.quorum.bootstrap.servers; format the directory with --standalone or --initial-controllers, or set one of them"
        )
    if config.is_alone:
        ensure_sole_voter(shape, me, log)
    else:
        warn_of_fixed_voters(config, shape)
    numbers = [FIRST_BOOTSTRAP - place for place in range(len(bootstrap))]
    saved = None if config.is_alone else load_election_state(log, shape, me)
    if saved is None and not shape.end:
        log.persist(ElectionState())  # marks an empty log as new; without the file, an empty log has lost its records
    now = clock.monotonic()
    own_entry = build_own_entry(config, bound)
    return Raft(
        me,
        meta.cluster_id,
        shape,
        saved,
        read_quorum_config(config),
        now,
        chance,
        numbers,
        can_be_controller=True,
        own_entry=own_entry,
    )


def warn_of_fixed_voters(config: BrokerConfig, shape: LogShape) -> None:
    """Log that `controller.quorum.voters` is ignored if the log has other voters, as in Kafka."""
    named = fixed_voters(config).ids
    if shape.kraft_version and named and shape.voters and named != shape.voters.ids:
        logger.warning(
            "controller.quorum.voters names %s, and %s vote by the log, which counts: leave the setting out, and set "
            "controller.quorum.bootstrap.servers",
            *(", ".join(map(str, sorted(ids))) for ids in (named, shape.voters.ids)),
        )


def build_own_entry(config: BrokerConfig, bound: Mapping[str, tuple[str, int]]) -> OwnEntry:
    """Return this node's voter entry, without endpoints if it listens on every address and advertises none."""
    advertised, order = config.advertised_endpoints(), [name.upper() for name in config.controller_listener_names]
    names = sorted(bound, key=lambda name: order.index(name) if name in order else len(order))
    places = [Endpoint(name, *(advertised[name][1:] if name in advertised else bound[name])) for name in names]
    own_endpoints = () if any(each.host in ANY_HOST for each in places) else tuple(places)
    return OwnEntry(own_endpoints, KRAFT_VERSIONS, config.controller_quorum_auto_join_enable)


def load_election_state(log: QuorumLog, shape: LogShape, me: ReplicaKey) -> ElectionState | None:
    """Return the saved election state; None if there is none.

    A vote for this node id without a directory id is one for this directory. CorruptRecordError if the state is lost in
    a quorum of several voters: this node may have voted, and must not vote twice in an epoch. A sole voter continues
    after the epochs of its log, as in Kafka.
    """
    alone = shape.voters.ids == {me.id}
    try:
        saved = log.read_promises()
    except CorruptRecordError as error:
        raise lost_vote_error(str(error), alone=alone) from error
    if saved is None and shape.end and alone:
        # A node without other nodes has no such file, and becomes a controller of a cluster with others in this way.
        logger.info(
            "no %s: node %d is the only voter, and continues with the epochs of its log",
            log.directory / PROMISES,
            me.id,
        )
    elif saved is None and shape.end and shape.kraft_version and shape.voters.has(me):
        raise lost_vote_error(f"{log.directory / PROMISES} is gone", alone=False)
    if saved is not None and saved.voted is not None and saved.voted.is_same(me):
        return saved._replace(voted=me)
    return saved


def read_quorum_config(config: BrokerConfig) -> QuorumConfig:
    return QuorumConfig(
        election_timeout_ms=config.controller_quorum_election_timeout_ms,
        fetch_timeout_ms=config.controller_quorum_fetch_timeout_ms,
        election_backoff_max_ms=config.controller_quorum_election_backoff_max_ms,
        request_timeout_ms=config.controller_quorum_request_timeout_ms,
        retry_backoff_ms=config.controller_quorum_retry_backoff_ms,
    )


def list_bootstrap_servers(config: BrokerConfig) -> list[Address]:
    text = config.controller_quorum_bootstrap_servers
    return [Address(*each) for each in read_controllers(text)] if text else []


def find_address(raft: Raft, config: BrokerConfig, node: int) -> Address | None:
    """Return the address of a node: from the voters, else from the last known leader; None if it is not known."""
    if node <= FIRST_BOOTSTRAP:
        return list_bootstrap_servers(config)[FIRST_BOOTSTRAP - node]
    known = raft.endpoints_of(node)
    names = [name.upper() for name in config.controller_listener_names]
    best = next((each for each in known if each.name.upper() in names), known[0] if known else None)
    return None if best is None else Address(best.host, best.port)
