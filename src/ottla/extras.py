"""Packages that come with an extra only: who has not got one is told which, and how to get it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ottla.errors import MissingExtraError


@contextmanager
def extra(name: str) -> Iterator[None]:
    """Around imports: MissingExtraError where a package of the extra `name` is not there."""
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or str(error)).partition(".")[0]
        raise MissingExtraError(
            f"this needs {package}, which is not installed; pip install 'ottla[{name}]'", name=error.name
        ) from None
