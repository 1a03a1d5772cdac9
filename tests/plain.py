"""Load a hot module uncompiled, next to the compiled one, so that tests can run both on the same bytes."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from functools import cache
from pathlib import Path
from types import ModuleType

import ottla


@cache
def plain(name: str, *bases: str) -> ModuleType:
    """Return the module `name` of Ottla, run from its `.py` even if a compiled module exists.

    `bases` are compiled modules whose classes it derives from: it derives from their uncompiled forms.
    """
    compiled = {base: importlib.import_module(base) for base in bases}
    sys.modules.update({base: plain(base) for base in bases})
    try:
        return fresh(name)
    finally:
        sys.modules.update(compiled)


def fresh(name: str) -> ModuleType:
    """Return a new copy of the uncompiled module at each call."""
    path = Path(ottla.__file__).parent.joinpath(*name.split(".")[1:]).with_suffix(".py")
    spec = importlib.util.spec_from_file_location(f"{name}__plain", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def is_compiled(module: ModuleType) -> bool:
    """True if `module` is the compiled form."""
    return not str(module.__file__).endswith(".py")
