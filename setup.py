"""Builds the hot loops: every module with a `.pxd` file next to it is compiled if there is a C compiler.

`OTTLA_COMPILE=no` in the environment leaves them uncompiled. With `OTTLA_COMPILE=must` a failed compilation is an error:
wheels for distribution are compiled, or not built. These, and a build with `OTTLA_COMPILE=full`, are optimized as far as Python itself;
other builds from source only in the folders of which it matters (docs/decisions/0153).
"""

from __future__ import annotations

import hashlib
import os
import sys
from contextlib import suppress
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
    "auto_pickle": False,  # pickled classes define their own methods; it was an eighth of the compiled code
    "show_performance_hints": False,
}
SHARED = "ottla._cython"
"""Code that Cython otherwise writes into each module (memory views, functions): half of the code to compile."""
C_OPTIONS = {"unix": ["-g0", "-w", "-fvisibility=hidden", "-ffunction-sections", "-fdata-sections"]}
"""By compiler type. They disable debugger symbols and warnings for generated C, which Python's options enable."""
TERMINAL = "/dev/tty"
REMEDY = "install a C compiler and Python's headers, then: pip install --force-reinstall --no-deps --no-cache-dir ottla"
QUICK_OPTIONS = {"unix": ["-Og"]}
"""They take a third of the time to compile a module, and follow Python's own -O3, so that they replace it."""
WORTH_OPTIMIZING = ("ottla.records.", "ottla.protocol.", "ottla._cython")
"""The code that runs for each byte. The other modules mostly call Python's own functions."""
COMPILED = {".so", ".pyd"}
LINK_OPTIONS = ["-s", "-Wl,--gc-sections"] if sys.platform == "linux" else []
"""They remove unused sections and symbol names: a seventh of a compiled module."""
BUILD_ID = "077a"
"""The start of the build id of a compiled module. The digest of its sources follows, so that a stale module is found (`tools/install.py`)."""


class BuildIfPossible(build_ext):
    """Builds the same modules uncompiled, with one message, if there is no C compiler."""

    def finalize_options(self) -> None:
        super().finalize_options()
        self.parallel = os.cpu_count()

    def build_extensions(self) -> None:
        for extension in self.extensions:
            kind = self.compiler.compiler_type
            is_quick = (
                wanted() not in ("must", "full")
                and "CFLAGS" not in os.environ
                and not extension.name.startswith(WORTH_OPTIMIZING)
            )
            extension.extra_compile_args = [
                *C_OPTIONS.get(kind, []),
                *(QUICK_OPTIONS.get(kind, []) if is_quick else []),
            ]
            extension.extra_link_args = [*LINK_OPTIONS, *build_id_options(extension.name)]
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


class BuildCurrentModules(build_py):
    """Builds into the folder of an earlier build, without the modules that have been deleted since."""

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


def build_id_options(name: str) -> list[str]:
    """Return the linker options for the build id of a module, on Linux."""
    module = Path("src", *name.split(".")).with_suffix(".py")
    return [f"-Wl,--build-id=0x{BUILD_ID}{digest_of(module)}"] if LINK_OPTIONS and module.exists() else []


def digest_of(module: Path) -> str:
    """Return the digest of the sources of a compiled module."""
    return hashlib.sha256(module.read_bytes() + b"\0" + module.with_suffix(".pxd").read_bytes()).hexdigest()[:36]


def wanted() -> str:
    """Return OTTLA_COMPILE: "no", "must", "full" or "" (the latter two if possible)."""
    return os.environ.get("OTTLA_COMPILE", "")


def remove_compiled_forms() -> None:
    """Delete compiled modules, because an older one would be imported instead of the newer source."""
    for source in [*SOURCES, f"src/{SHARED.replace('.', '/')}.py"]:
        for stale in Path(source).parent.glob(f"{Path(source).stem}.*.so"):
            stale.unlink()


def say(reason: str) -> None:
    """Print the one line for the user, also on the terminal: pip hides what a build prints."""
    line = f"ottla: hot loops stay uncompiled ({reason}): correct, but several times slower; {REMEDY}"
    print(line, file=sys.stderr)
    if not sys.stderr.isatty() and not os.environ.get("CI"):
        with suppress(OSError), open(TERMINAL, "w", encoding="utf-8") as terminal:
            print(f"\n{line}", file=terminal)


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
    setup(ext_modules=extensions(), cmdclass={"build_ext": BuildIfPossible, "build_py": BuildCurrentModules})
