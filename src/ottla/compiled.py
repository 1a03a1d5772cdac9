"""Whether the hot loops are compiled: the same files run either way, at a different speed."""

from __future__ import annotations

import logging
from functools import cache
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from types import ModuleType

log = logging.getLogger(__name__)
MOST_NAMES = 2


def uncompiled_modules(package: Path | None = None) -> list[str]:
    """The hot modules, those with a `.pxd` beside them, that run as plain Python."""
    root = package or Path(__file__).parent
    return sorted(
        ".".join((root.name, *pxd.relative_to(root).with_suffix("").parts))
        for pxd in hot_modules(root)
        if not is_compiled(pxd)
    )


def hot_modules(package: Path | None = None) -> list[Path]:
    """The `.pxd` of each."""
    return [pxd for pxd in (package or Path(__file__).parent).rglob("*.pxd") if pxd.with_suffix(".py").exists()]


def is_compiled(pxd: Path) -> bool:
    """Whether Python will find the compiled form, which it prefers."""
    return any(pxd.with_suffix(suffix).exists() for suffix in EXTENSION_SUFFIXES)


def runs_compiled(module: ModuleType) -> bool:
    """Whether a module that is loaded is its compiled form; where it came from may be an archive, which has no files to look for."""
    return not str(module.__file__).endswith((".py", ".pyc"))


@cache
def warn_if_uncompiled() -> None:
    """Say it once in the life of a process, where there is something to say."""
    package = Path(__file__).parent
    if not package.is_dir():
        log.warning(
            "running out of the archive %s, from which Python loads no compiled hot loops: correct, but several times slower; "
            "install Ottla where it runs, or ship an environment in which it is installed (Spark: --archives)",
            package.parent,
        )
        return
    modules = uncompiled_modules()
    if modules:
        log.warning(
            "running without compiled hot loops (%s): correct, but several times slower; install a C compiler and Python's headers, then "
            "reinstall without pip's cached wheel: pip install --force-reinstall --no-deps --no-cache-dir ottla",
            ", ".join(modules[:MOST_NAMES])
            + (f" and {len(modules) - MOST_NAMES} more" if modules[MOST_NAMES:] else ""),
        )


def warn_if_slow(module: ModuleType) -> None:
    """Log the warning if a hot module that is loaded is not compiled; costs nothing if it is."""
    if not runs_compiled(module):
        warn_if_uncompiled()
