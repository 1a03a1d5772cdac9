"""Runs the tests of clients, broker, its command and coordination on the newest Python found here: `make test-newest`.

What `.venv` runs on has had the whole suite; another Python, which `PYTHONS="python3.14"` may name, gets an environment of
its own in `.venv-newest`: the pinned packages of the extra `test`, no Spark, and Ottla as it lies here, uncompiled.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

from tools.wheels import pythons

ROOT = Path(__file__).parent.parent
HOME = ROOT / ".venv-newest"
STAMP = HOME / "installed"
TESTS = (
    "tests/client",
    "tests/aio",
    "tests/broker",
    "tests/coordination",
    "tests/cli/test_broker.py",
    "tests/repository/test_foreign_names.py",
)
FULL_VERSION = "import sys; print('%d.%d.%d' % sys.version_info[:3])"


def main() -> None:
    newest = max(pythons(), key=version)
    if version(newest)[:2] <= sys.version_info[:2]:
        print(f"make test-newest: no Python here is newer than {version_of(sys.executable)} of .venv: nothing to run")
        return
    prepare(newest)
    python = str(HOME / "bin" / "python")
    print(f"make test-newest: clients, broker and coordination on Python {version_of(python)}", flush=True)
    shared_out = ("--numprocesses", "auto", "--maxprocesses", "4", "--dist", "loadgroup", "--max-worker-restart", "0")
    # Tests start hundreds of processes; where PYTHONDONTWRITEBYTECODE is set, each would compile all that it imports.
    run(python, "-m", "compileall", "-q", "src")
    plain = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    command = [python, "-m", "pytest", "-p", "no:cacheprovider", *shared_out, *TESTS, *sys.argv[1:]]
    sys.exit(subprocess.run(command, cwd=ROOT, env=plain, check=False).returncode)


def version(python: str) -> tuple[int, ...]:
    """The version of a Python."""
    return tuple(map(int, version_of(python).split(".")))


def version_of(python: str) -> str:
    """The same as it is written."""
    return subprocess.run([python, "-c", FULL_VERSION], capture_output=True, text=True, check=True).stdout.strip()


def prepare(python: str) -> None:
    """The environment; nothing to do where what decides about it has not changed."""
    wanted = digest(version_of(python))
    if STAMP.exists() and STAMP.read_text(encoding="utf-8") == wanted:
        return
    print(f"installing what tests need for Python {version_of(python)} into {HOME.name}", flush=True)
    run(python, "-m", "venv", "--clear", str(HOME))
    pip = (str(HOME / "bin" / "python"), "-m", "pip", "--quiet", "--no-input", "--disable-pip-version-check", "install")
    run(*pip, "-c", "constraints.txt", "-e", ".[test]")
    STAMP.write_text(wanted, encoding="utf-8")


def digest(version: str) -> str:
    """Return a summary of the environment."""
    files = (ROOT / name for name in ("pyproject.toml", "setup.py", "constraints.txt"))
    return hashlib.sha256(b"\0".join([version.encode(), *(file.read_bytes() for file in files)])).hexdigest()


def run(*command: str) -> None:
    """Run, and on failure end with what it said."""
    plain = {**os.environ, "OTTLA_COMPILE": "no"}
    result = subprocess.run(
        command, cwd=ROOT, env=plain, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    if result.returncode:
        sys.exit(f"{result.stdout}make test-newest: {' '.join(command[:4])} failed; what it said is above")


if __name__ == "__main__":
    main()
