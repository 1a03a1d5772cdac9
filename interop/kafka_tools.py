"""Run Kafka's own command line tools in Java, each in its own JVM, or several in one JVM."""

from __future__ import annotations

import subprocess
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from interop.java_programs import program
from rivals.apache_kafka import java

TOOLS = "org.apache.kafka.tools"
PATIENCE = 60.0


def tool(name: str, *arguments: object, stdin: str = "") -> str:
    """Run a tool and return its standard output. Raises if the tool fails."""
    command = java(f"{TOOLS}.{name}", *map(str, arguments))
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, f"{name} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
    return done.stdout


def dump(file: Path, *arguments: str) -> str:
    """Return the output of DumpLogSegments for one of our files."""
    return tool("DumpLogSegments", "--files", file, *arguments)


class ToolResult(NamedTuple):
    """The output of a tool and its exit status."""

    text: str
    status: int


class Tools:
    """A JVM that runs tools one after the other, because its start takes longer than most of them."""

    def __init__(self) -> None:
        self._jvm = subprocess.Popen(
            program("Tools"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._jvm.stdin is not None
        assert self._jvm.stdout is not None
        self._jvm.stdin.close()
        self._jvm.wait(PATIENCE)
        self._jvm.stdout.close()

    def run(self, name: str, *arguments: object) -> ToolResult:
        """Run a tool and return its output, whether it succeeds or fails, without log lines."""
        assert self._jvm.stdin is not None
        assert self._jvm.stdout is not None
        main_class = name if name.startswith(("kafka.", "org.")) else f"{TOOLS}.{name}"
        self._jvm.stdin.write("\t".join((main_class, *map(str, arguments))) + "\n")
        self._jvm.stdin.flush()
        lines: list[str] = []
        for line in self._jvm.stdout:
            if line.startswith("\0"):
                return ToolResult("".join(lines).strip(), int(line[1:]))
            lines.append(line)
        raise AssertionError(f"the JVM ended while it ran {name}: {''.join(lines)}")
