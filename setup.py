"""Builds the hot loops: every module that has a `.pxd` beside it is compiled when a C compiler is there."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from setuptools import setup
from setuptools.command.build_ext import build_ext

SOURCES = sorted(str(pxd.with_suffix(".py")) for pxd in Path("src/ottla").rglob("*.pxd"))
OPTIONS = {"language_level": 3, "boundscheck": False, "wraparound": False, "annotation_typing": False}


class BuildWhereWeCan(build_ext):
    """A machine without a C compiler gets the same modules, uncompiled, and is told so."""

    def run(self) -> None:
        try:
            super().run()
        except Exception as error:  # the compiler's own exceptions have no common root
            self.say(error)

    def build_extension(self, ext: Any) -> None:
        try:
            super().build_extension(ext)
        except Exception as error:
            self.say(error)

    def say(self, error: Exception) -> None:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        print(f"ottla: hot loops stay uncompiled ({reason}): correct, but slower", file=sys.stderr)


def extensions() -> list[Any]:
    try:
        from Cython.Build import cythonize
    except ImportError:
        print("ottla: no Cython, hot loops stay uncompiled: correct, but slower", file=sys.stderr)
        return []
    return list(cythonize(SOURCES, compiler_directives=OPTIONS, build_dir="build", quiet=True)) if SOURCES else []


setup(ext_modules=extensions(), cmdclass={"build_ext": BuildWhereWeCan})
