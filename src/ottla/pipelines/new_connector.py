"""The template of a connector: a folder with a source that works, its entry point, and a test that passes."""

from __future__ import annotations

import re
from pathlib import Path

from ottla.errors import ConfigError

NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")

PROJECT = """\
[build-system]
requires = ["setuptools>=77"]
build-backend = "setuptools.build_meta"

[project]
name = "ottla-{name}"
version = "0.1.0"
dependencies = ["ottla[pipelines]"]

[project.entry-points."ottla.pipelines.sources"]
{name} = "{module}:{title}Source"

[tool.setuptools]
py-modules = ["{module}"]
"""

SOURCE = '''\
"""`type: {name}` in pipeline files: the lines of a file that grows. Replace it with the data that you want to read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from ottla.pipelines.sources.polling import PollingSource


class {title}Source(PollingSource):
    """The lines of a file that grows."""

    type: Literal["{name}"]
    path: str
    """The file. Each field of the class is a key in the pipeline file, checked before anything runs."""

    def describe(self) -> str:
        """Return the source's name in plans. A checkpoint can only be continued by a source of the same name."""
        return f"lines of {{self.path}}"

    def columns(self) -> str:
        return "line string"

    def poll(self, position: Any) -> tuple[Sequence[Any], Any]:
        """Return the rows after the position, and the position after them: here the bytes read so far, None at first.

        Returned rows are kept until they are in the sink, so each row is polled once, even if a process is killed.
        """
        start = position or 0
        data = Path(self.path).read_bytes()[start:]
        whole = data[: data.rfind(b"\\n") + 1]  # an incomplete last line is read later
        return [{{"line": line}} for line in whole.decode().splitlines()], start + len(whole)
'''

TEST = '''\
"""Tests of the source without Spark: `poll` is called as a pipeline calls it."""

from __future__ import annotations

from pathlib import Path

from {module} import {title}Source


def test_lines_come_once_and_new_ones_later(tmp_path: Path) -> None:
    file = tmp_path / "log.txt"
    file.write_text("one\\ntwo\\nhal")
    source = {title}Source(type="{name}", path=str(file))
    rows, position = source.poll(None)
    assert [row["line"] for row in rows] == ["one", "two"]
    assert source.poll(position) == ([], position)
    file.write_text("one\\ntwo\\nhalf\\n")
    rows, position = source.poll(position)
    assert [row["line"] for row in rows] == ["half"]
'''


def new_connector(name: str, folder: Path) -> Path:
    """Write the template into a new folder of that name, and return the folder; ConfigError if it exists."""
    if not NAME.fullmatch(name):
        raise ConfigError(
            f"{name!r} is not a valid connector name: use small letters, digits and dashes, for example `my-source`"
        )
    module = f"ottla_{name.replace('-', '_')}"
    title = "".join(part.capitalize() for part in name.split("-"))
    target = folder / name
    try:
        target.mkdir()
    except OSError as error:
        raise ConfigError(f"{target} cannot be created: {error.strerror}; choose another name or folder") from None
    for file, text in (("pyproject.toml", PROJECT), (f"{module}.py", SOURCE), (f"test_{module}.py", TEST)):
        (target / file).write_text(text.format(name=name, module=module, title=title), encoding="utf-8")
    return target
