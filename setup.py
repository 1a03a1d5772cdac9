"""Builds the hot loops: every module with a `.pxd` file next to it is compiled if there is a C compiler.

`OTTLA_COMPILE=no` in the environment leaves them uncompiled. With `OTTLA_COMPILE=must` a failed compilation is an error:
wheels for distribution are compiled, or not built. These, and a build with `OTTLA_COMPILE=full`, are optimized as far as Python itself;
other builds from source only in the folders of which it matters (docs/decisions/0153).

A source distribution contains the C code that Cython generates (docs/decisions/0156). It is compiled as it is if it belongs to the sources;
otherwise, and in a clone, Cython generates it.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

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
BUILD = "build"
GENERATED = Path("generated")
"""The C code in a source distribution, with the digest of what it was generated from."""
DIGEST = GENERATED / "digest"
C_OPTIONS = {"unix": ["-g0", "-w", "-fvisibility=hidden", "-ffunction-sections", "-fdata-sections"]}
"""By compiler type. They disable debugger symbols and warnings for generated C, which Python's options enable."""
TERMINAL = "/dev/tty"
REMEDY = "install a C compiler and Python's headers, then: pip install --force-reinstall --no-deps --no-cache-dir ottla"
QUICK_OPTIONS = {"ottla.records.": "-O3", "ottla.protocol.": "-O1", "ottla.": "-Og"}
"""The optimization of a build from source by folder. Records have the code that runs for each byte, messages that for each field.

-Og takes a third of the time of -O3. The options follow Python's own -O3, so that they replace it.
"""
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
            is_quick = kind == "unix" and wanted() not in ("must", "full") and "CFLAGS" not in os.environ
            quick = [option for folder, option in QUICK_OPTIONS.items() if extension.name.startswith(folder)][:1]
            extension.extra_compile_args = [*C_OPTIONS.get(kind, []), *(quick if is_quick else [])]
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


class DistributeGeneratedCode(sdist):
    """Adds the generated C code, so that an installation from source does not need Cython."""

    def make_release_tree(self, base_dir: str, files: list[str]) -> None:
        super().make_release_tree(base_dir, files)
        made = self.distribution.ext_modules or []
        for extension in made:
            (code,) = extension.sources
            target = base_dir / GENERATED / Path(code).relative_to(BUILD)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(code, target)
        if made:
            (base_dir / DIGEST).write_text(digest_of_inputs(), encoding="ascii")


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


def digest_of_inputs() -> str:
    """Return the digest of what the C code is generated from."""
    files = sorted({*map(Path, SOURCES), *Path("src/ottla").rglob("*.pxd")})
    digest = hashlib.sha256(repr((SHARED, DIRECTIVES)).encode())
    for file in files:
        digest.update(f"\0{file.as_posix()}\0".encode() + file.read_bytes())
    return digest.hexdigest()


def has_generated_code() -> bool:
    """Return True if this is a source distribution with the C code of its sources. A patched one needs Cython."""
    return DIGEST.exists() and DIGEST.read_text(encoding="ascii") == digest_of_inputs()


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
    is_for_distribution = "sdist" in sys.argv
    if not SOURCES or (wanted() == "no" and not is_for_distribution):
        return []
    if has_generated_code() and not is_for_distribution:
        shared = f"src/{SHARED.replace('.', '/')}.py"
        return [
            Extension(name_of(each), [str(GENERATED / Path(each).with_suffix(".c"))]) for each in (*SOURCES, shared)
        ]
    try:
        from Cython.Build import cythonize
    except ImportError:
        if wanted() == "must":
            raise
        say("no Cython")
        return []
    shared_code = Extension(SHARED, [f"src/{SHARED.replace('.', '/')}.c"])
    forms: list[Any] = cythonize(  # type: ignore[no-untyped-call]
        [*SOURCES, shared_code],
        compiler_directives=DIRECTIVES,
        shared_utility_qualified_name=SHARED,
        build_dir=BUILD,
        force=is_for_distribution or None,  # an earlier build may have left code of other sources
        nthreads=os.cpu_count() or 1,
        quiet=True,
    )
    return forms


def name_of(source: str) -> str:
    """Return the name of the module in a file such as src/ottla/trace.py."""
    return ".".join(Path(source).with_suffix("").parts[1:])


if __name__ == "__main__":  # the processes in which Cython works may read this file again
    commands = {"build_ext": BuildIfPossible, "build_py": BuildCurrentModules, "sdist": DistributeGeneratedCode}
    setup(ext_modules=extensions(), cmdclass=commands)
