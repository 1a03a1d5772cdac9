"""What can be wrong with a table, each in one sentence; and libraries that are not there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ottla.errors import OttlaError


class TableError(OttlaError):
    """A table cannot be read or written so."""


class SchemaMismatchError(TableError):
    """Rows do not fit the table."""


class NullInColumnError(SchemaMismatchError):
    """A row has no value in a column in which the table allows no null."""


class CheckpointError(TableError):
    """What a checkpoint says and what the table says cannot both be true."""


@contextmanager
def needing(package: str, format_name: str) -> Iterator[None]:
    """Say how to install `package` where it is not there."""
    try:
        yield
    except ImportError as error:
        raise TableError(
            f"{format_name} needs the package {package}, which cannot be loaded ({error}); pip install 'ottla[tables]'"
        ) from None
