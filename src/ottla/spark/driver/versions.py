"""Whether what is installed is what source and sink were written for, said before something fails without saying so.

The bounds are those of `pyproject.toml`; nothing is imported to find out.
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
"""The first version that will do, and the first that will not."""
OPTIONAL = {"pandas"}
"""What Spark uses if it is there."""
REMEDY = "pip install 'ottla[spark]'"


class VersionError(OttlaError):
    """A package is missing, or of a version that does not go with Ottla."""


def ensure_versions(*packages: str, installed: Callable[[str], str] = version) -> None:
    """VersionError in one sentence, unless all of `packages`, by default of `BOUNDS`, are there as they should be."""
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
    """(4, 2, 0) from `4.2.0.dev1`."""
    match = re.match(r"\d+(\.\d+)*", text)
    return tuple(int(part) for part in match[0].split(".")) if match else ()


def dotted(parts: Version) -> str:
    return ".".join(map(str, parts))
