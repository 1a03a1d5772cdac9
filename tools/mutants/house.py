"""A copy of the package, without compiled parts, in which one module at a time has a mistake.

Python prefers the compiled form of a module, in which a change of the `.py` shows nothing; here there is none.
"""

from __future__ import annotations

import compileall
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import cache_from_source
from pathlib import Path

from tools.mutants.mutations import Mutant
from tools.mutants.rooms import SOURCE, Module


class House:
    """The first entry of `sys.path` of a process that runs a trial."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / "house"
        shutil.copytree(SOURCE, self.path, ignore=shutil.ignore_patterns("*.so", "*.c", "__pycache__", "*.egg-info"))
        compileall.compile_dir(self.path, quiet=2)

    def remove(self) -> None:
        """Delete the copy."""
        shutil.rmtree(self.folder)

    def file(self, module: Module) -> Path:
        return self.path / "ottla" / module.name

    @contextmanager
    def with_mistake(self, module: Module, mutant: Mutant) -> Iterator[None]:
        """Give the module this mutation within the block."""
        file = self.file(module)
        source = file.read_bytes()
        # By its time and size alone a compiled file could pass for that of another source.
        Path(cache_from_source(str(file))).unlink(missing_ok=True)
        file.write_bytes(mutant.planted(source))
        try:
            yield
        finally:
            file.write_bytes(source)
