"""What keeps a group or a transactional id out of service, for a while or until a person has looked at it."""

from __future__ import annotations

from collections.abc import Callable

from ottla.broker.partitions.partition import Partition
from ottla.errors import ErrorCode, KafkaError
from ottla.model import TopicPartition
from ottla.storage.batches.damage import OutOfServiceError


def fault_in(find: Callable[[], object]) -> OutOfServiceError | None:
    """The damage that `find` comes upon; other errors may be gone when the client comes, or there is nothing yet."""
    try:
        find()
    except OutOfServiceError as error:
        return error
    except KafkaError:
        pass
    return None


class StillLoading(KafkaError):
    """What is kept in a partition is being read from its log."""

    def __init__(self, partition: Partition) -> None:
        super().__init__(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, f"{partition.topic_partition} is being read")


def not_here(place: TopicPartition) -> KafkaError:
    return KafkaError(ErrorCode.NOT_COORDINATOR, f"another broker leads {place}")
