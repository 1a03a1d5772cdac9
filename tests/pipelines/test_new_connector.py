"""A connector of one's own: the template works, and what is installed is found by its type."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path
from typing import Any

import pytest

import ottla.pipelines.installed as found_by
from ottla.errors import ConfigError
from ottla.pipelines.installed import load_connectors
from ottla.pipelines.new_connector import new_connector
from ottla.pipelines.sources import SOURCES, RateSource, Source

pytestmark = pytest.mark.behaviour("D7")

FILE = """\
pipelines:
  mine:
    source: {{type: my-log, {key}: log.txt}}
    sink: {{type: console}}
"""


def run(folder: Path, *arguments: str, path: Path | None = None) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [str(path or ""), *sys.path]))}
    command = [sys.executable, "-m", *arguments]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False
    )


def install(target: Path) -> None:
    """Write the files of `pip install`, without an index."""
    about = target / "ottla_my_log-0.1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: ottla-my-log\nVersion: 0.1.0\n")
    (about / "entry_points.txt").write_text("[ottla.pipelines.sources]\nmy-log = ottla_my_log:MyLogSource\n")


@pytest.mark.house
def test_the_test_of_the_template_passes_and_its_type_is_known_where_it_is_installed(tmp_path: Path) -> None:
    target = new_connector("my-log", tmp_path)
    tried = run(tmp_path, "pytest", "-q", "-p", "no:cacheprovider", str(target))
    assert "1 passed" in tried.stdout, tried.stdout + tried.stderr
    assert 'my-log = "ottla_my_log:MyLogSource"' in (target / "pyproject.toml").read_text("utf-8")
    install(target)
    (tmp_path / "good.yaml").write_text(FILE.format(key="path"))
    (tmp_path / "bad.yaml").write_text(FILE.format(key="paht"))
    good = run(tmp_path, "ottla.cli.main", "pipeline", "validate", "good.yaml", path=target)
    assert "1 pipeline, no errors: mine" in good.stdout, good.stderr
    bad = run(tmp_path, "ottla.cli.main", "pipeline", "validate", "bad.yaml", path=target)
    assert "bad.yaml:3:28: unknown key 'paht'; did you mean 'path'?" in bad.stderr


@pytest.mark.parametrize("name", ["My", "a_b", "a b", "../a", ""])
def test_a_name_that_is_not_valid_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match="is not a valid connector name: use small letters"):
        new_connector(name, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_there_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    with pytest.raises(ConfigError, match="cannot be created: File exists; choose another name"):
        new_connector("mine", tmp_path)


WRONG: dict[tuple[str, str], str] = {
    ("rate", "ottla.pipelines.sources:RateSource"): "connector 'rate': this type exists already",
    ("mine", "no_such_module:X"): "connector 'mine' cannot be loaded: ModuleNotFoundError",
    ("mine", "json:loads"): "not a Source; derive it from ottla.pipelines.sources.source.Source",
}


@pytest.mark.parametrize("point", WRONG, ids=[value for _, value in WRONG])
def test_an_entry_point_that_is_not_valid_is_reported(monkeypatch: pytest.MonkeyPatch, point: tuple[str, str]) -> None:
    name, value = point

    def points(group: str) -> Any:
        return EntryPoints([EntryPoint(name, value, group)])

    monkeypatch.setattr(found_by, "entry_points", points)
    with pytest.raises(ConfigError) as error:
        load_connectors("ottla.pipelines.sources", Source, SOURCES)
    assert WRONG[point] in str(error.value)


def test_a_class_of_another_package_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    def points(group: str) -> Any:
        return EntryPoints([EntryPoint("other", "ottla.pipelines.sources:RateSource", group)])

    monkeypatch.setattr(found_by, "entry_points", points)
    assert load_connectors("ottla.pipelines.sources", Source, SOURCES) == {"other": RateSource}
