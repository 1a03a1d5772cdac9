"""Optional packages: a clear error with the install command if one is missing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ottla.errors import MissingExtraError


@contextmanager
def extra(name: str) -> Iterator[None]:
    """Convert a failed import in the block to a MissingExtraError for the extra `name`.

    Blocks may be nested: the outermost one names the extra, since it is the one of the feature that the user has chosen.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or str(error)).partition(".")[0]
        raise MissingExtraError(
            f"this needs {package}, which is not installed; pip install 'ottla[{name}]'", name=error.name
        ) from None
