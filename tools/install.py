"""Fills .venv: every extra at the versions of constraints.txt, Ottla itself editable, its hot loops compiled.

Does nothing when nothing changed: the digests of the files that decide are kept in .venv. Run by `make install`
with the Python of .venv, so it needs nothing but the standard library.
"""

from __future__ import annotations

import compileall
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).parent.parent
STAMP = Path(sys.prefix, "ottla-installed.json")
BUILDERS = ("setuptools", "cython")
PIP = (sys.executable, "-m", "pip", "--quiet", "--no-input", "--disable-pip-version-check")
SHARED = ROOT / "src" / "ottla" / "_cython.py"  # has a compiled form only
BUILD_ID = re.compile(rb"GNU\0\x07\x7a(.{18})", re.DOTALL)
"""The note in a compiled form with the digest of its sources (`setup.py`)."""
HEADER_BYTES = 4096
"""The bytes at the start of a file that contain its build id."""
EXTRAS = "arrow,spark,schemas,tables,console,demo,docs,dev"


def main() -> None:
    before = remembered()
    packages = digest(
        [ROOT / name for name in ("pyproject.toml", "setup.py", "constraints.txt")], str(sys.version_info)
    )
    if before.get("packages") != packages:
        print("installing Ottla and every extra into .venv (a few minutes the first time: Spark is large)", flush=True)
        install_packages()
    recipe = digest([ROOT / "setup.py"], compiler(), builder_versions())
    compiled = digest(sources(), recipe)
    stale = stale_forms()
    for module in stale:
        form(module).unlink()  # the build compares times, and a copied file may be older than its source
    if before.get("compiled") != compiled or stale or missing_forms():
        build(force=before.get("recipe") != recipe)
        print(outcome())
    keep_byte_code()
    remember({"packages": packages, "recipe": recipe, "compiled": compiled})


def remembered() -> dict[str, str]:
    """The digests of the last run."""
    try:
        found: dict[str, str] = json.loads(STAMP.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found


def remember(digests: dict[str, str]) -> None:
    """Write a file atomically, since several targets of one `make` run this in parallel."""
    part = STAMP.with_suffix(f".{os.getpid()}")
    part.write_text(json.dumps(digests), encoding="utf-8")
    part.replace(STAMP)


def digest(files: Iterable[Path], *more: str) -> str:
    """One digest over the contents of `files`; times of change do not count, so a checkout costs nothing."""
    total = hashlib.sha256("\0".join(more).encode())
    for file in sorted(files):
        total.update(f"\0{file.relative_to(ROOT)}\0".encode() + file.read_bytes())
    return total.hexdigest()


def hot_modules() -> list[Path]:
    """Return every module with a `.pxd` file."""
    sources = (pxd.with_suffix(".py") for pxd in sorted((ROOT / "src").rglob("*.pxd")))
    return [module for module in sources if module.exists()]


def sources() -> list[Path]:
    """Return the sources of the compiled forms, including `.pxd` files with shared types."""
    return [*hot_modules(), *(ROOT / "src").rglob("*.pxd")]


def compiler() -> str:
    """The C compiler that would be used, "" without one: one that was installed since is a reason to build again."""
    command = (sysconfig.get_config_var("CC") or "cc").split()[0]
    return shutil.which(command) or ""


def builder_versions() -> str:
    """Return the other inputs of the compiled forms."""
    return " ".join(f"{name} {version(name)}" for name in BUILDERS)


def form(module: Path) -> Path:
    """Return the path of the compiled form of `module` for this Python."""
    return module.with_name(module.stem + sysconfig.get_config_var("EXT_SUFFIX"))


def compiled_modules() -> list[Path]:
    """Return the modules that have a compiled form."""
    return [module for module in hot_modules() if form(module).exists()]


def missing_forms() -> bool:
    """Return true if there is a compiler but no compiled forms, as after `make clean`."""
    return bool(compiler()) and not all(form(module).exists() for module in [*hot_modules(), SHARED])


def stale_forms() -> list[Path]:
    """Return the modules with a compiled form that was built from another version of their sources.

    Forms without our build id, as on macOS, are not checked.
    """
    return [module for module in compiled_modules() if (built := built_from(module)) and built != digest_of(module)]


def built_from(module: Path) -> str:
    """Return the digest of the sources from which the compiled form of a module was built; "" if it is unknown."""
    with form(module).open("rb") as file:
        found = BUILD_ID.search(file.read(HEADER_BYTES))
    return found[1].hex() if found else ""


def digest_of(module: Path) -> str:
    """Return the digest of the sources of a compiled module, as setup.py computes it."""
    return hashlib.sha256(module.read_bytes() + b"\0" + module.with_suffix(".pxd").read_bytes()).hexdigest()[:36]


def outcome() -> str:
    """How Ottla will run from now on, in one line."""
    hot = hot_modules()
    plain = len(hot) - len(compiled_modules())
    return (
        f"ottla: {len(hot)} hot loops compiled" if not plain else f"ottla: {plain} of {len(hot)} hot loops uncompiled"
    )


def install_packages() -> None:
    """Pinned builders first, then everything without isolation, so that those build what comes as source."""
    pinned = ("install", "-c", "constraints.txt")
    os.environ["OTTLA_COMPILE"] = "no"  # pip would compile in a folder of its own, and in silence
    run([*PIP, *pinned, *BUILDERS], "pip could not install the build tools")
    run([*PIP, *pinned, "--no-build-isolation", "-e", f".[{EXTRAS}]"], "pip could not install Ottla's dependencies")
    del os.environ["OTTLA_COMPILE"]


def build(*, force: bool) -> None:
    """Compile in place what has changed, or all of it; without a compiler the build says so itself, and Ottla runs uncompiled."""
    print("compiling the hot loops (half a minute on two cores when all are new)", flush=True)
    os.environ["OTTLA_COMPILE"] = "full"  # what is measured and tested here is what wheels have
    os.environ["CYTHON_FORCE_REGEN"] = "1" if force else "0"
    command = [sys.executable, "setup.py", "-q", "build_ext", "--inplace", *(["--force"] if force else [])]
    run(command, "the hot loops could not be built", show=True)


def keep_byte_code() -> None:
    """The modules compiled to byte code, as pip does for what it installs."""
    # A start is mostly imports; where PYTHONDONTWRITEBYTECODE is set, as in many containers, each start would compile all modules again.
    compileall.compile_dir(ROOT / "src", quiet=2)


def run(command: list[str], otherwise: str, *, show: bool = False) -> None:
    """Run, and on failure print what the command said and one sentence."""
    result = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if result.returncode or show:
        sys.stderr.write(result.stdout)
    if result.returncode:
        sys.exit(f"make install: {otherwise}; what it said is above")


if __name__ == "__main__":
    main()
