"""Names of a package that are imported on first use (PEP 562), so that importing the package is fast."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from ottla.uncollected import uncollected


def loader_of(package: str, home: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the package's `__getattr__`; `home` has the module of each name. An imported name becomes an attribute."""

    def load(name: str) -> Any:
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        with uncollected():
            value = getattr(import_module(home[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return load
