"""`ottla version`."""

from __future__ import annotations

import json
import platform

from ottla import __version__
from tests.cli.conftest import ottla


def test_the_versions_of_ottla_python_and_installed_libraries_are_printed() -> None:
    rows = {row["component"]: row["version"] for row in json.loads(ottla("version", "--json").out)}
    assert rows["ottla"] == __version__
    assert rows["Python"].startswith(platform.python_version())
    assert rows["msgspec"]
    assert "compiled hot loops" in rows
