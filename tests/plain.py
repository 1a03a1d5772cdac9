"""Loads a hot module uncompiled, beside the compiled one, so that tests can set both to the same bytes."""

from __future__ import annotations

import importlib.util
import sys
from functools import cache
from pathlib import Path
from types import ModuleType

import ottla


@cache
def plain(name: str) -> ModuleType:
    """The module `name` of Ottla, run from its `.py` whatever stands beside it."""
    return fresh(name)


def fresh(name: str) -> ModuleType:
    """The same, and another one with each call."""
    path = Path(ottla.__file__).parent.joinpath(*name.split(".")[1:]).with_suffix(".py")
    spec = importlib.util.spec_from_file_location(f"{name}__plain", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def is_compiled(module: ModuleType) -> bool:
    """Whether `module` is the compiled form."""
    return not str(module.__file__).endswith(".py")
