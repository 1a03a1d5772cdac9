"""Errors of tables, and of missing libraries."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ottla.errors import OttlaError


class TableError(OttlaError):
    """A table cannot be read or written."""


class SchemaMismatchError(TableError):
    """Rows do not fit the table."""


class NullInColumnError(SchemaMismatchError):
    """A row has null in a column of the table that does not allow it."""


class CheckpointError(TableError):
    """The checkpoint contradicts the table."""


@contextmanager
def require_package(package: str, format_name: str) -> Iterator[None]:
    """Raise TableError with the command to install `package` if it cannot be imported."""
    try:
        yield
    except ImportError as error:
        raise TableError(
            f"{format_name} needs the package {package}, which cannot be loaded ({error}); pip install 'ottla[tables]'"
        ) from None
