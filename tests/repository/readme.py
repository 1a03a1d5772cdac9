"""Run the blocks of the README and its further pages unchanged, in their order.

Only the port differs, so that several readers can run at once: it replaces 9092 in a block. Wrapper commands in PATH
add it for shell blocks that name no port.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable
from contextlib import suppress
from importlib.metadata import Distribution, distribution
from pathlib import Path
from types import TracebackType

from packaging.requirements import Requirement

from ottla.free_ports import free_port

ROOT = Path(__file__).parent.parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = ("getting-started.md", "delivery-guarantees.md")
GUIDE = "\n".join([README, *((ROOT / "docs" / page).read_text(encoding="utf-8") for page in PAGES)])
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
SPARK = re.compile(r"\bspark\b|writeStream")
PATIENCE = 300

COMMAND = """#!/bin/sh
case $1 in broker) set -- "$@" --listen 127.0.0.1:{port} ;; esac
OTTLA_BOOTSTRAP_SERVERS=127.0.0.1:{port} exec {python} -m ottla.cli.main "$@"
"""


def blocks(language: str = "python") -> list[str]:
    """Return the blocks of a language, each once. Blocks without a language are the shell's."""
    return list(dict.fromkeys(text for found, text in BLOCK.findall(GUIDE) if found == language))


def programs() -> list[str]:
    """Return the blocks that are complete programs."""
    return [text for text in blocks("python") if not SPARK.search(text)]


def spark_blocks() -> list[str]:
    """Return the blocks of one Spark session. Each one uses the names of the previous blocks."""
    return [text for text in blocks("python") if SPARK.search(text)]


def commands() -> list[str]:
    """Return the blocks of the shell that call `ottla`, in their order."""
    return [text for text in blocks("") if "ottla " in text and "pip install" not in text]


class Reader:
    """Runs blocks in `folder`. Background processes are killed at the end."""

    def __init__(self, folder: Path, python: str) -> None:
        self.folder = folder
        self.python = python
        self.port = free_port()
        self._groups: list[int] = []
        commands = folder / "bin"
        commands.mkdir()
        ottla = commands / "ottla"
        ottla.write_text(COMMAND.format(python=python, port=self.port), encoding="utf-8")
        ottla.chmod(0o755)

    @property
    def servers(self) -> str:
        return f"127.0.0.1:{self.port}"

    def run_shell(self, block: str) -> str:
        """Run the block in a shell and return its complete output. It has to end by itself with status 0."""
        return self._run(["bash", "-e", "-c", block])

    def run_program(self, block: str, until: Callable[[str], bool] | None = None) -> str:
        """Run the program and return its output.

        A program without an end is interrupted, as by Ctrl-C, when `until` accepts the output.
        """
        program = self.folder / "program.py"
        program.write_text(block.replace("127.0.0.1:9092", self.servers), encoding="utf-8")
        return self._run([self.python, "-u", str(program)], until)

    def _run(self, command: list[str], until: Callable[[str], bool] | None = None) -> str:
        said = self.folder / f"said-{len(self._groups)}"
        environment = os.environ | {"PATH": f"{self.folder / 'bin'}{os.pathsep}{os.environ['PATH']}"}
        with said.open("wb") as output:
            process = subprocess.Popen(
                command, cwd=self.folder, env=environment, stdout=output, stderr=output, start_new_session=True
            )
        self._groups.append(process.pid)
        if until is not None:
            interrupt(process, said, until)
        result = process.wait(PATIENCE)
        text = said.read_text(encoding="utf-8")
        assert result == 0, text
        assert "Traceback" not in text, text
        return text

    def __enter__(self) -> Reader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for group in self._groups:
            try:
                os.killpg(group, signal.SIGKILL)
            except ProcessLookupError:
                continue


def interrupt(process: subprocess.Popen[bytes], said: Path, until: Callable[[str], bool]) -> bool:
    """Send SIGINT when `until` accepts the output. Returns True if it was sent."""
    deadline = time.monotonic() + PATIENCE
    while process.poll() is None and time.monotonic() < deadline:
        if until(said.read_text(encoding="utf-8")):
            process.send_signal(signal.SIGINT)
            return True
        with suppress(subprocess.TimeoutExpired):
            process.wait(0.05)
    return False


def extras() -> set[str]:
    """Return the names of Ottla's extras."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return set(project["optional-dependencies"])


def environment(folder: Path, extras: str) -> Path:
    """Create an environment with only Ottla, these extras and their dependencies, as links to installed packages."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    (site,) = folder.glob("lib/python*/site-packages")
    for package in brought(extras):
        for name in {file.parts[0] for file in package.files or ()} - {"..", "__pycache__"}:
            if not (site / name).is_symlink():
                (site / name).symlink_to(str(package.locate_file(name)))
    return folder / "bin" / "python"


def brought(extras: str) -> list[Distribution]:
    """Return Ottla with these extras and all their dependencies."""
    found: list[Distribution] = []
    waiting, seen = [("ottla", extra) for extra in extras.split(",")], set[tuple[str, str]]()
    while waiting:
        name, extra = waiting.pop()
        if (name, extra) in seen:
            continue
        seen.add((name, extra))
        found.append(distribution(name))
        for needed in map(Requirement, found[-1].requires or ()):
            if needed.marker is None or needed.marker.evaluate({"extra": extra}):
                waiting += [(needed.name, each) for each in ("", *needed.extras)]
    return found
