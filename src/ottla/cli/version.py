"""`ottla version`: the versions that a report of a problem needs."""

from __future__ import annotations

import platform
import sys
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as version_of

import click

from ottla._version import __version__
from ottla.cli.options import json_option
from ottla.cli.tables import show
from ottla.compiled import hot_modules, uncompiled_modules

COLUMNS = ("COMPONENT", "VERSION")
LIBRARIES = ("click", "msgspec", "pyarrow", "pandas", "pyspark", "fastavro", "protobuf", "duckdb", "cryptography")


@click.command("version")
@json_option
def version(in_json: bool) -> None:
    """Print the versions of Ottla, Python and the libraries that it uses, for a report of a problem."""
    rows = [
        ("ottla", __version__),
        ("compiled hot loops", hot_loops_text()),
        ("Python", f"{platform.python_version()} ({sys.implementation.name})"),
        ("system", f"{platform.system()} {platform.release()} {platform.machine()}"),
        *((name, found) for name in LIBRARIES if (found := installed_version(name)) is not None),
    ]
    show(COLUMNS, rows, in_json=in_json)


def hot_loops_text() -> str:
    """Return how many of the hot loops are compiled."""
    all_count, slow_count = len(hot_modules()), len(uncompiled_modules())
    return f"{all_count - slow_count} of {all_count}"


def installed_version(distribution: str) -> str | None:
    """Return the version of an installed distribution, without importing it."""
    try:
        return version_of(distribution)
    except PackageNotFoundError:
        return None
