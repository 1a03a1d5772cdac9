"""Builds the hot loops: every module that has a `.pxd` beside it is compiled when a C compiler is there.

`OTTLA_COMPILE=no` in the environment leaves them uncompiled.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from setuptools import setup
from setuptools.command.build_ext import build_ext

PAIRS = (pxd.with_suffix(".py") for pxd in Path("src/ottla").rglob("*.pxd"))
SOURCES = sorted(str(source) for source in PAIRS if source.exists())
OPTIONS = {"language_level": 3, "boundscheck": False, "wraparound": False, "annotation_typing": False}


class BuildWhereWeCan(build_ext):
    """A machine without a C compiler gets the same modules, uncompiled, and is told so once."""

    def finalize_options(self) -> None:
        super().finalize_options()
        self.parallel = os.cpu_count()

    def run(self) -> None:
        try:
            super().run()
        except Exception as error:  # the compiler's own exceptions have no common root
            # An older compiled form would be imported instead of the newer source.
            for source in SOURCES:
                for stale in Path(source).parent.glob(f"{Path(source).stem}.*.so"):
                    stale.unlink()
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            say(reason)
            self.extensions = []  # nothing to copy, nothing to install


def say(reason: str) -> None:
    """The one line that a person sees."""
    print(f"ottla: hot loops stay uncompiled ({reason}): correct, but slower", file=sys.stderr)


def extensions() -> list[Any]:
    try:
        from Cython.Build import cythonize
    except ImportError:
        say("no Cython")
        return []
    if not SOURCES or os.environ.get("OTTLA_COMPILE") == "no":
        return []
    return list(cythonize(SOURCES, compiler_directives=OPTIONS, build_dir="build", quiet=True))  # type: ignore[no-untyped-call]


setup(ext_modules=extensions(), cmdclass={"build_ext": BuildWhereWeCan})
