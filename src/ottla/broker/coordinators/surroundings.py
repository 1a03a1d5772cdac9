"""What both coordinators find around them in a broker."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from ottla.broker.cluster.topics import Topics
from ottla.broker.coordinators.commitment import Commitment
from ottla.broker.partitions.partition import Partition
from ottla.broker.partitions.partitions import Partitions
from ottla.broker.timers import Timers
from ottla.clock import Clock
from ottla.coordination.cluster.topic import Topic
from ottla.protocol.messages.create_topics import CreatableTopicResult


class Surroundings(Struct, frozen=True):
    """The topics and partitions in which a coordinator keeps its records, and the broker's time."""

    topics: Topics
    partitions: Partitions
    clock: Clock
    timers: Timers
    appended: Callable[[Partition, int], None]
    """To be called with how many bytes a machine has appended to a partition."""
    commitment: Commitment
    ensure: Callable[[str], Topic | CreatableTopicResult]
    """The topic of that name, which is made where it is not there, or why it is not there yet."""
