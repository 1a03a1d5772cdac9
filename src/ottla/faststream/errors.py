"""Errors of Ottla as those of aiokafka, which faststream handles."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from aiokafka.errors import KafkaError as DriverError
from aiokafka.errors import for_code

from ottla.errors import KafkaError, OttlaError


def to_driver_error(error: OttlaError) -> Exception:
    """Return the error of aiokafka for the same error code, with the text of Ottla's."""
    kind = for_code(int(error.code)) if isinstance(error, KafkaError) else DriverError
    found: Exception = kind(str(error))
    found.__cause__ = error
    return found


@contextmanager
def driver_errors() -> Iterator[None]:
    """Convert errors of the block."""
    try:
        yield
    except OttlaError as error:
        raise to_driver_error(error) from error
