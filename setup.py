"""Builds the hot loops: every module that has a `.pxd` beside it is compiled when a C compiler is there.

`OTTLA_COMPILE=no` in the environment leaves them uncompiled, `OTTLA_COMPILE=must` makes it an error that they cannot be
compiled: what is built for others is compiled, or not built.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py

PAIRS = (pxd.with_suffix(".py") for pxd in Path("src/ottla").rglob("*.pxd"))
SOURCES = sorted(str(source) for source in PAIRS if source.exists())
DIRECTIVES = {
    "language_level": 3,
    "boundscheck": False,
    "wraparound": False,
    "annotation_typing": False,
    "auto_pickle": False,  # what travels by pickle says itself how; it was an eighth of what is compiled
    "show_performance_hints": False,
}
SHARED = "ottla._cython"
"""What Cython would else write into each module (views of memory, functions): half of all there is to compile."""
C_OPTIONS = {"unix": ["-g0", "-w", "-fvisibility=hidden", "-ffunction-sections", "-fdata-sections"]}
"""By the kind of compiler. Python's own options ask for symbols for a debugger, and for warnings, of C that nobody wrote."""
COMPILED = {".so", ".pyd"}
LINK_OPTIONS = ["-s", "-Wl,--gc-sections"] if sys.platform == "linux" else []
"""What nothing calls, and the names of what is called, stay out: a seventh of a compiled module."""


class BuildWhereWeCan(build_ext):
    """A machine without a C compiler gets the same modules, uncompiled, and is told so once."""

    def finalize_options(self) -> None:
        super().finalize_options()
        self.parallel = os.cpu_count()

    def build_extensions(self) -> None:
        for extension in self.extensions:
            extension.extra_compile_args = C_OPTIONS.get(self.compiler.compiler_type, [])
            extension.extra_link_args = LINK_OPTIONS
        super().build_extensions()

    def run(self) -> None:
        try:
            super().run()
        except Exception as error:  # the compiler's own exceptions have no common root
            if wanted() == "must":
                raise
            remove_compiled_forms()
            say(str(error).splitlines()[0] if str(error) else type(error).__name__)
            self.extensions = []  # nothing to copy, nothing to install


class BuildWhatIsThere(build_py):
    """Builds again into a folder that an earlier build has left, without the modules that have been deleted since."""

    def run(self) -> None:
        if not self.editable_mode:
            remove_stale_files(Path(self.build_lib), Path("src"))
        super().run()


def remove_stale_files(built: Path, source: Path) -> None:
    """Delete the built files that have no source any more. The source of a compiled module is the `.pxd` of its name."""
    for file in built.rglob("*"):
        name = f"{file.name.partition('.')[0]}.pxd" if file.suffix in COMPILED else file.name
        if file.is_file() and not (source / file.relative_to(built).parent / name).exists():
            file.unlink()


def wanted() -> str:
    """What the environment says: "no", "must" or "", where we can."""
    return os.environ.get("OTTLA_COMPILE", "")


def remove_compiled_forms() -> None:
    """An older compiled form would be imported instead of the newer source."""
    for source in [*SOURCES, f"src/{SHARED.replace('.', '/')}.py"]:
        for stale in Path(source).parent.glob(f"{Path(source).stem}.*.so"):
            stale.unlink()


def say(reason: str) -> None:
    """The one line that a person sees."""
    print(f"ottla: hot loops stay uncompiled ({reason}): correct, but slower", file=sys.stderr)


def extensions() -> list[Any]:
    if not SOURCES or wanted() == "no":
        return []
    try:
        from Cython.Build import cythonize
    except ImportError:
        if wanted() == "must":
            raise
        say("no Cython")
        return []
    shared = Extension(SHARED, [f"src/{SHARED.replace('.', '/')}.c"])
    forms: list[Any] = cythonize(  # type: ignore[no-untyped-call]
        [*SOURCES, shared],
        compiler_directives=DIRECTIVES,
        shared_utility_qualified_name=SHARED,
        build_dir="build",
        nthreads=os.cpu_count() or 1,
        quiet=True,
    )
    return forms


if __name__ == "__main__":  # the processes in which Cython works may read this file again
    setup(ext_modules=extensions(), cmdclass={"build_ext": BuildWhereWeCan, "build_py": BuildWhatIsThere})
