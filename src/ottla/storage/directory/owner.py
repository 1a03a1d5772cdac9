"""Which topic a partition's folder is of."""

from __future__ import annotations

import uuid
from pathlib import Path

from ottla.kafka_id import text_of
from ottla.storage.batches.damage import OutOfServiceError, folder_in_place, remedy
from ottla.storage.files.storage_error import storage_error
from ottla.storage.segments.log_folder import METADATA_FILE, read_topic_id


def says_whose(folder: Path, topic_id: uuid.UUID) -> bool:
    """Whether the folder says whose it is; OutOfServiceError where it is not this topic's."""
    try:
        found = read_topic_id(folder)
    except IsADirectoryError as error:
        raise folder_in_place(folder / METADATA_FILE) from error
    except OSError as error:
        raise storage_error(f"no topic id for {folder}", error) from error
    except ValueError as error:
        raise OutOfServiceError(f"{error}; {remedy(folder)}") from error
    if found is not None and found != topic_id:
        raise OutOfServiceError(
            f"{folder} belongs to topic id {text_of(found)}, not {text_of(topic_id)}: move that folder away, or if "
            f"its {METADATA_FILE} is damaged, {remedy(folder)}"
        )
    return found is not None
