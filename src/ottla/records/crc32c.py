"""CRC-32C (Castagnoli), the checksum of record batches, computed by a processor instruction."""

from __future__ import annotations

from collections.abc import Callable
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec


def load() -> Callable[..., int]:
    """Return the function of the package `crc32c` without importing the package.

     The package reads its own version with `importlib.metadata`, which imports `email` and `zipfile`: a tenth of a
    broker's start.
    """
    package = find_spec("crc32c")
    folders = package.submodule_search_locations if package else None
    spec = PathFinder.find_spec("_crc32c", folders)
    if spec is None or spec.loader is None:
        from crc32c import crc32c as whole

        return whole
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    found: Callable[..., int] = module.crc32c
    return found


crc32c = load()
