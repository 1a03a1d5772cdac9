"""Detect whether the hot loops are compiled; uncompiled they are slower, and otherwise the same."""

from __future__ import annotations

import logging
from functools import cache
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from types import ModuleType

log = logging.getLogger(__name__)
MOST_NAMES = 2


def uncompiled_modules(package: Path | None = None) -> list[str]:
    """Return the hot modules (those with a `.pxd` file) that run as plain Python."""
    root = package or Path(__file__).parent
    return sorted(
        ".".join((root.name, *pxd.relative_to(root).with_suffix("").parts))
        for pxd in hot_modules(root)
        if not is_compiled(pxd)
    )


def hot_modules(package: Path | None = None) -> list[Path]:
    """Return the `.pxd` files of the hot modules."""
    return [pxd for pxd in (package or Path(__file__).parent).rglob("*.pxd") if pxd.with_suffix(".py").exists()]


def is_compiled(pxd: Path) -> bool:
    """Return true if Python will import the compiled form, which it prefers."""
    return any(pxd.with_suffix(suffix).exists() for suffix in EXTENSION_SUFFIXES)


def runs_compiled(module: ModuleType) -> bool:
    """Return true if an imported module is compiled; its location may be an archive, in which files cannot be checked."""
    return not str(module.__file__).endswith((".py", ".pyc"))


@cache
def warn_if_uncompiled() -> None:
    """Log a warning once per process if a hot module is not compiled."""
    package = Path(__file__).parent
    if not package.is_dir():
        log.warning(
            "running from the archive %s, from which Python cannot load compiled hot loops: correct, but several times slower; "
            "install Ottla on the machine, or ship an environment that contains it (Spark: --archives)",
            package.parent,
        )
        return
    modules = uncompiled_modules()
    if modules:
        log.warning(
            "running without compiled hot loops (%s): correct, but several times slower; install a C compiler and Python's headers, then "
            "reinstall without pip's cached wheel, in a clone: pip install --force-reinstall --no-deps --no-cache-dir .",
            ", ".join(modules[:MOST_NAMES])
            + (f" and {len(modules) - MOST_NAMES} more" if modules[MOST_NAMES:] else ""),
        )


def warn_if_slow(module: ModuleType) -> None:
    """Log the warning if an imported hot module is not compiled; costs nothing if it is."""
    if not runs_compiled(module):
        warn_if_uncompiled()
