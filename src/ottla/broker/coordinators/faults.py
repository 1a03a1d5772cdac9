"""What keeps a group or a transactional id out of service, for whoever looks for its coordinator."""

from __future__ import annotations

from collections.abc import Callable

from ottla.errors import KafkaError
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
