"""Checks that installed packages have supported versions, because others fail without a clear error.

The bounds are those of `pyproject.toml`; no package is imported.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version

from ottla.errors import OttlaError

Version = tuple[int, ...]

BOUNDS: dict[str, tuple[Version, Version]] = {
    "pyspark": ((4, 2), (4, 4)),
    "pyarrow": ((17,), (27,)),
    "pandas": ((2, 2), (3,)),
}
"""The first supported version, and the first unsupported one after it."""
OPTIONAL = {"pandas"}
"""Packages that Spark uses if they are installed."""
REMEDY = "pip install 'ottla[spark]'"


class VersionError(OttlaError):
    """A package is missing, or of a version that Ottla does not support."""


def ensure_versions(*packages: str, installed: Callable[[str], str] = version) -> None:
    """Raise VersionError unless all of `packages` (by default those in `BOUNDS`) have supported versions."""
    for package in packages or BOUNDS:
        least, beyond = BOUNDS[package]
        words = f"ottla.spark needs {package} from {dotted(least)} to below {dotted(beyond)}"
        try:
            found = installed(package)
        except PackageNotFoundError:
            if package in OPTIONAL:
                continue
            raise VersionError(f"{words}, and it is not installed; {REMEDY}") from None
        if not least <= numbers(found) < beyond:
            raise VersionError(f"{words}, and this is {found}; {REMEDY}")


def numbers(text: str) -> Version:
    """Return (4, 2, 0) for `4.2.0.dev1`."""
    match = re.match(r"\d+(\.\d+)*", text)
    return tuple(int(part) for part in match[0].split(".")) if match else ()


def dotted(parts: Version) -> str:
    return ".".join(map(str, parts))
