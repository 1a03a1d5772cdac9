"""Names of a package that are loaded when they are first used (PEP 562), so that importing it costs little."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from ottla.uncollected import uncollected


def loader_of(package: str, home: Mapping[str, str]) -> Callable[[str], Any]:
    """The package's `__getattr__`; `home` says in which module each name is defined. What was loaded stays in the package."""

    def load(name: str) -> Any:
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        with uncollected():
            value = getattr(import_module(home[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return load
