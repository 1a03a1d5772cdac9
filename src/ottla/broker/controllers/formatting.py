"""The directory of a controller before its first start: whose it is, and who votes, as `kafka-storage format` leaves it.

    bootstrap.checkpoint     levels of features, and passwords, where somebody wants others than a new cluster has by itself
    __cluster_metadata-0/00000000000000000000-0000000000.checkpoint     header │ kraft.version 1, voters │ footer
    meta.properties

Where the settings name the voters (`controller.quorum.voters`, kraft.version 0), or others will add this one, there is no checkpoint.
`meta.properties` is written last: a directory that has it is formatted in whole, and what a crash left of one is begun anew.
"""

from __future__ import annotations

import shutil
from collections.abc import Collection, Sequence
from pathlib import Path

from ottla.broker.machines.bootstrap_checkpoint import BOOTSTRAP, write_bootstrap
from ottla.broker.settings.config import BrokerConfig
from ottla.broker.settings.endpoints import ANY_HOST
from ottla.broker.settings.quorum_settings import VoterPlace
from ottla.broker.settings.roles import controller_half
from ottla.clock import Clock, SystemClock
from ottla.coordination.quorum.control_records import KRaftVersionRecord, encode_control
from ottla.coordination.quorum.observer import METADATA_TOPIC
from ottla.coordination.quorum.voters import VoterSet
from ottla.coordination.quorum.voters_record import Endpoint, KRaftVersionFeature, Voter
from ottla.errors import ConfigError
from ottla.kafka_id import LAST_RESERVED, id_of
from ottla.protocol.schema import Message
from ottla.storage.directory.meta_properties import FILE_NAME, MetaProperties, random_id
from ottla.storage.directory.offset_checkpoints import OffsetCheckpoints
from ottla.storage.state_log.snapshot import EMPTY, write_state
from ottla.storage.state_log.voter import Quorum

LOG = f"{METADATA_TOPIC}-0"
KRAFT_VERSION = 1
"""Voters are in the log, and change by records there (KIP-853)."""


def format_standalone(
    config: BrokerConfig, cluster_id: str, clock: Clock, first: Sequence[Message] = ()
) -> MetaProperties:
    """It is the one voter to begin with; others are added. `first` is what the cluster's log begins with."""
    me = own_place(config)._replace(directory_id=random_id())
    return format_directories(config, cluster_id, clock, first, [me])


def format_initial(
    config: BrokerConfig, cluster_id: str, voters: Sequence[VoterPlace], clock: Clock, first: Sequence[Message] = ()
) -> MetaProperties:
    """It is one of those who vote from the beginning; each directory is formatted with the same line."""
    me = next((each for each in voters if each.node_id == config.node_id), None)
    if me is None:
        raise ConfigError(
            f"--initial-controllers: node.id = {config.node_id} is not among them; add it, or leave out the option"
        )
    for each in voters:
        try:
            if id_of(each.directory_id) <= LAST_RESERVED:
                raise ValueError(
                    "it is one of Kafka's marks, and no broker gets in with it: draw one by `ottla storage random-uuid`"
                )
        except ValueError as error:
            raise ConfigError(
                f"--initial-controllers: the directory id {each.directory_id!r} of node {each.node_id} cannot be: {error}"
            ) from None
    return format_directories(config, cluster_id, clock, first, voters)


def format_without_voters(
    config: BrokerConfig, cluster_id: str, clock: Clock | None = None, first: Sequence[Message] = ()
) -> MetaProperties:
    """Who votes is said elsewhere: in the settings, by the quorum that it will be added to, or by its first start where it is a cluster by itself."""
    return format_directories(config, cluster_id, clock or SystemClock(), first)


def own_place(config: BrokerConfig) -> VoterPlace:
    """Where the others reach it; ConfigError where the settings do not say."""
    config = voting(config)
    first = config.endpoints()[0]
    place = config.advertised_endpoints().get(first.name, first)
    if place.host in ANY_HOST or not place.port:
        raise ConfigError(
            f"listeners = {config.listeners!r}: {first.name} must have a host and a port that others can connect to, as it is "
            f"written down who votes and where; set advertised.listeners = {first.name}://HOST:PORT"
        )
    return VoterPlace(config.node_id, place.host, place.port)


def write_voters(config: BrokerConfig, voters: Sequence[VoterPlace], clock: Clock) -> None:
    """The checkpoint that a log of such voters begins with."""
    listener = voting(config).endpoints()[0].name
    told = VoterSet(
        Voter(
            each.node_id,
            id_of(each.directory_id),
            [Endpoint(listener, each.host, each.port)],
            KRaftVersionFeature(0, 1),
        )
        for each in voters
    )
    folder = folder_of(config) / LOG
    folder.mkdir()
    quorum = Quorum(encode_control(KRaftVersionRecord(0, KRAFT_VERSION))[1], encode_control(told.record())[1])
    write_state(folder, EMPTY, [], clock.wall_ms(), quorum, sync=True)


def voting(config: BrokerConfig) -> BrokerConfig:
    """The settings of what votes, where that is one half of a node."""
    return controller_half(config) if config.combines else config


def folder_of(config: BrokerConfig) -> Path:
    return Path(config.metadata_directory)


def directories_of(config: BrokerConfig) -> list[str]:
    """All that a node has; the one with the metadata comes first."""
    return list(dict.fromkeys((config.metadata_directory, *config.directories)))


def formatted_already(config: BrokerConfig, cluster_id: str) -> list[str]:
    """The directories of which it is said already whose they are; ConfigError where one is of another node or cluster."""
    found = [each for each in directories_of(config) if (Path(each) / FILE_NAME).exists()]
    for each in found:
        MetaProperties.of(Path(each), config.node_id, cluster_id)
    return found


def format_others(config: BrokerConfig, cluster_id: str, formatted: Collection[str]) -> None:
    """Say of the rest of a node's directories whose they are."""
    for each in directories_of(config):
        if each not in formatted:
            MetaProperties.format(Path(each), config.node_id, cluster_id, fill=OffsetCheckpoints(Path(each)).begin)


def has_no_voters(config: BrokerConfig) -> bool:
    """Whether the directory with the metadata is formatted, and nothing in it says who votes."""
    folder = folder_of(config)
    return (folder / FILE_NAME).exists() and not (folder / LOG).exists()


def format_directories(
    config: BrokerConfig,
    cluster_id: str,
    clock: Clock,
    first: Sequence[Message] = (),
    voters: Sequence[VoterPlace] = (),
) -> MetaProperties:
    """Say of each directory whose it is, if that is not said yet; what a controller needs is in its own by then."""
    folder = folder_of(config)
    own = next((each.directory_id for each in voters if each.node_id == config.node_id), None)

    def fill() -> None:
        if first:
            write_bootstrap(folder, first, clock.wall_ms())
        if voters:
            write_voters(config, voters, clock)
        OffsetCheckpoints(folder).begin()  # so that it is told from one that was emptied

    clear_what_a_crash_left(folder)
    main = MetaProperties.format(folder, config.node_id, cluster_id, own, fill)
    format_others(config, cluster_id, formatted_already(config, cluster_id))
    return main


def clear_what_a_crash_left(folder: Path) -> None:
    """Take out what a format wrote that did not come to its end: a log that has begun is left."""
    log = folder / LOG
    if (folder / FILE_NAME).exists():
        return
    if log.is_dir() and all(each.name.startswith(EMPTY.file_name) for each in log.iterdir()):
        shutil.rmtree(log)
    if not log.exists():
        (folder / BOOTSTRAP).unlink(missing_ok=True)
