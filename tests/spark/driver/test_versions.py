"""Versions of what is installed: as they should be, or one sentence."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

import ottla.spark
from ottla.spark.driver import versions
from ottla.spark.driver.versions import BOUNDS, VersionError, dotted, ensure_versions, numbers

GOOD = {"pyspark": "4.3.0", "pyarrow": "26.0.1", "pandas": "2.3.3"}


def having(**changed: str | None) -> Callable[[str], str]:
    """Return the function `importlib.metadata.version` of such a machine."""

    def installed(package: str) -> str:
        found = (GOOD | changed)[package]
        if found is None:
            raise PackageNotFoundError(package)
        return found

    return installed


def test_an_installed_package_is_sufficient() -> None:
    ensure_versions()
    ensure_versions(installed=having(pandas=None))


@pytest.mark.parametrize(
    ("package", "found", "sentence"),
    [
        (
            "pyspark",
            "4.1.1",
            r"^ottla.spark needs pyspark from 4.2 to below 4.4, and this is 4.1.1; pip install 'ottla\[",
        ),
        ("pyspark", "4.4.0.dev1", "pyspark from 4.2 to below 4.4, and this is 4.4.0.dev1"),
        ("pandas", "3.0.0", "pandas from 2.2 to below 3, and this is 3.0.0"),
        ("pandas", "2.1.4", "and this is 2.1.4"),
        ("pyarrow", "16.1.0", "pyarrow from 17 to below 27, and this is 16.1.0"),
        ("pyarrow", None, r"pyarrow from 17 to below 27, and it is not installed; pip install 'ottla\[spark\]'"),
        ("pyspark", "nonsense", "and this is nonsense"),
    ],
)
def test_a_wrong_version_is_a_one_line_error(package: str, found: str | None, sentence: str) -> None:
    with pytest.raises(VersionError, match=sentence):
        ensure_versions(installed=having(**{package: found}))


def test_a_session_does_not_start_with_a_wrong_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(versions.BOUNDS, "pandas", ((1,), (2,)))
    with pytest.raises(VersionError, match="needs pandas from 1 to below 2"):
        ottla.spark.session()


def test_the_bounds_are_those_of_the_package() -> None:
    project = tomllib.loads(Path(__file__).parents[3].joinpath("pyproject.toml").read_text("utf-8"))
    extra = project["project"]["optional-dependencies"]["spark"]
    for package, (least, beyond) in BOUNDS.items():
        assert f"{package}>={dotted(least)},<{dotted(beyond)}" in extra


def test_numbers_are_read_from_versions() -> None:
    assert [numbers(text) for text in ("4.2.0", "4.3.0.dev1", "3", "x")] == [(4, 2, 0), (4, 3, 0), (3,), ()]
