"""The checks of `make release`."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from tools.release import check_version, dependencies, digest, licence_of, repack, select_components

CHANGELOG = (
    "# Changelog\n\n## Unreleased\n\n### Added\n\n* Broker: something.\n\n## 1.2.3 — 2026-01-31\n\n* CLI: more.\n"
)
RELEASED = CHANGELOG.replace("* Broker: something.\n", "")


@pytest.mark.parametrize(
    ("changelog", "tags", "version", "reason"),
    [
        (CHANGELOG, [], "1.2", "invalid version '1.2'"),
        (CHANGELOG, [], "1.2.4", "CHANGELOG.md has no section '## 1.2.4"),
        (RELEASED, ["v1.2.2"], "1.2.3", "has the tag v1.2.2, and its version is 1.2.3: expected v1.2.3"),
        (CHANGELOG, ["v1.2.3"], "1.2.3", "CHANGELOG.md has unreleased changes at the tag v1.2.3"),
    ],
)
def test_a_wrong_version_is_refused_with_the_reason(changelog: str, tags: list[str], version: str, reason: str) -> None:
    with pytest.raises(SystemExit, match=reason.replace("'", ".").replace("(", ".")):
        check_version(changelog, tags, version)


def test_a_commit_before_its_tag_may_have_unreleased_changes() -> None:
    check_version(CHANGELOG, [], "1.2.3")
    check_version(RELEASED, ["v1.2.3", "nightly"], "1.2.3")


def test_archives_of_the_same_files_are_equal_after_repacking(tmp_path: Path) -> None:
    archives = [tmp_path / "one.tar.gz", tmp_path / "two.tar.gz"]
    for number, archive in enumerate(archives):
        with tarfile.open(archive, "w:gz") as file:
            for name in ("b", "a")[:: 1 if number else -1]:
                member = tarfile.TarInfo(name)
                member.size, member.mtime, member.uname = 3, number, f"user{number}"
                file.addfile(member, io.BytesIO(b"abc"))
        repack(archive, 1_700_000_000)
    assert digest(archives[0]) == digest(archives[1])
    with tarfile.open(archives[0]) as file:
        assert file.getnames() == ["a", "b"]


def test_the_licence_of_each_dependency_of_the_core_is_known() -> None:
    found = dependencies()
    assert {"click", "rich", "cramjam", "crc32c", "msgspec", "pyarrow"} <= found.keys()
    assert not {"pytest", "mypy", "mkdocs-material"} & found.keys()
    assert licence_of(found["click"]) == "BSD-3-Clause"
    assert licence_of(found["msgspec"]) == "BSD-3-Clause"


def test_a_bill_of_materials_has_only_the_selected_packages() -> None:
    bill = {
        "metadata": {"component": {"bom-ref": "root", "name": "ottla"}},
        "components": [{"bom-ref": "1", "name": "Click"}, {"bom-ref": "2", "name": "pytest"}],
        "dependencies": [{"ref": "root", "dependsOn": ["1", "2"]}, {"ref": "2"}],
    }
    selected = select_components(bill, {"click"})
    assert [each["name"] for each in selected["components"]] == ["Click"]
    assert selected["dependencies"] == [{"ref": "root", "dependsOn": ["1"]}]
