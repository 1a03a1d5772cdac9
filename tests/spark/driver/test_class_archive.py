"""The archive of Java's classes: it costs or saves time and nothing else."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

from ottla.spark.driver.class_archive import (
    MAKING,
    OPTIONS,
    UNUSED,
    archive_path,
    archived_classes,
    claim_build,
    find_archive,
    publish_archive,
    read_options,
    size_of,
    start_archive_build,
)
from tests.small_disk import mounted

pytestmark = pytest.mark.behaviour("D1")


@pytest.fixture
def surroundings(tmp_path: Path) -> dict[str, str]:
    """The environment of a user with a cache of its own and no chosen archive."""
    return {"PATH": os.environ["PATH"], "XDG_CACHE_HOME": str(tmp_path)}


def kept(surroundings: dict[str, str], mode: int = 0o600) -> Path:
    """An archive where it is looked for."""
    archive = archive_path(surroundings)
    archive.parent.mkdir(mode=0o700)
    archive.write_bytes(b"classes")
    archive.chmod(mode)
    size_of(archive).write_text("7")
    return archive


def test_java_receives_an_existing_archive_and_no_other(surroundings: dict[str, str]) -> None:
    with archived_classes(surroundings):
        assert OPTIONS not in surroundings
    archive = kept(surroundings)
    with archived_classes(surroundings):
        assert surroundings[OPTIONS] == read_options(archive)
    assert OPTIONS not in surroundings


def test_other_options_of_the_user_are_kept_and_restored(surroundings: dict[str, str]) -> None:
    archive = kept(surroundings)
    surroundings[OPTIONS] = "-Xmx1g"
    with archived_classes(surroundings):
        assert surroundings[OPTIONS] == f"-Xmx1g {read_options(archive)}"
    assert surroundings[OPTIONS] == "-Xmx1g"


@pytest.mark.parametrize("decided", ["-Xshare:off", "-XX:SharedArchiveFile=/mine.jsa", "-XX:ArchiveClassesAtExit=x"])
def test_an_explicit_setting_is_kept(surroundings: dict[str, str], decided: str) -> None:
    surroundings[OPTIONS] = decided
    kept(surroundings)
    with archived_classes(surroundings):
        assert surroundings[OPTIONS] == decided
    assert start_archive_build(surroundings) is None


@pytest.mark.parametrize("mode", [0o620, 0o602])
def test_an_archive_that_others_may_write_is_not_used(surroundings: dict[str, str], mode: int) -> None:
    kept(surroundings, mode)
    assert find_archive(surroundings) is None


def test_nor_is_one_in_a_folder_in_which_others_may_put_it(surroundings: dict[str, str]) -> None:
    kept(surroundings).parent.chmod(0o777)
    assert find_archive(surroundings) is None


def test_other_jars_have_another_archive(surroundings: dict[str, str], tmp_path: Path) -> None:
    before = archive_path(surroundings)
    surroundings["SPARK_HOME"] = str(tmp_path)
    (tmp_path / "jars").mkdir()
    jar = tmp_path / "jars" / "spark.jar"
    jar.write_bytes(b"1")
    another = archive_path(surroundings)
    jar.write_bytes(b"12")
    assert len({before, another, archive_path(surroundings)}) == 3


def test_without_a_java_or_a_folder_nothing_is_made_or_reported(tmp_path: Path) -> None:
    assert find_archive({"PATH": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)}) is None
    assert start_archive_build({"PATH": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)}) is None
    (tmp_path / "file").touch()
    assert start_archive_build({"PATH": os.environ["PATH"], "XDG_CACHE_HOME": str(tmp_path / "file")}) is None


def test_one_makes_it_and_tries_again_after_a_day(surroundings: dict[str, str]) -> None:
    archive = archive_path(surroundings)
    assert claim_build(archive)
    assert not claim_build(archive)
    long_ago = time.time() - 90_000
    os.utime(archive.with_suffix(".tried"), (long_ago, long_ago))
    assert claim_build(archive)


def test_a_killed_archive_build_leaves_nothing_behind_permanently(surroundings: dict[str, str]) -> None:
    archive = archive_path(surroundings)
    left, under_way = archive.parent / f"{MAKING}left", archive.parent / f"{MAKING}now"
    for folder in (left, under_way):
        folder.mkdir(parents=True)
        (folder / "classes.jsa").touch()
    archive.parent.chmod(0o700)
    os.utime(left, (time.time() - 90_000,) * 2)
    assert claim_build(archive)
    assert (left.exists(), under_way.exists()) == (False, True)


def test_none_is_made_where_it_could_not_be_used(surroundings: dict[str, str]) -> None:
    folder = archive_path(surroundings).parent
    folder.mkdir()
    folder.chmod(0o777)
    assert start_archive_build(surroundings) is None
    assert list(folder.iterdir()) == []


@pytest.fixture
def maker(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A fake maker that records its folder and arguments; the real one takes minutes on a busy machine."""
    monkeypatch.setattr("ottla.spark.driver.class_archive.MAKER", "maker")
    folder = tmp_path / "modules"
    folder.mkdir()
    (folder / "maker.py").write_text("import os, sys; open('made', 'w').write(f'{os.getcwd()} {sys.argv[1]}')")
    return folder


def test_the_maker_works_in_the_cache_where_no_module_of_the_user_is_in_its_way(
    surroundings: dict[str, str], maker: Path
) -> None:
    process = start_archive_build(surroundings | {"PYTHONPATH": str(maker)})
    assert process is not None
    assert process.wait(60) == 0
    archive = archive_path(surroundings)
    assert (archive.parent / "made").read_text() == f"{archive.parent} {archive}"


def test_one_that_was_cut_short_is_made_again(surroundings: dict[str, str], maker: Path) -> None:
    kept(surroundings).write_bytes(b"class")
    process = start_archive_build(surroundings | {"PYTHONPATH": str(maker)})
    assert process is not None
    assert process.wait(60) == 0


def test_an_existing_archive_is_not_built_again(surroundings: dict[str, str]) -> None:
    kept(surroundings)
    assert start_archive_build(surroundings) is None


def test_a_new_archive_replaces_unused_ones(surroundings: dict[str, str], tmp_path: Path) -> None:
    used, unused = kept(surroundings), archive_path(surroundings).with_name("spark-classes-old.jsa")
    unused.touch()
    os.utime(unused, (time.time() - UNUSED - 60,) * 2)
    made, new = tmp_path / "made", used.with_name("spark-classes-new.jsa")
    made.write_bytes(b"classes")
    assert claim_build(new)
    publish_archive(made, new)
    assert sorted(used.parent.iterdir()) == sorted([used, size_of(used), new, size_of(new)])


def test_one_on_a_disk_that_cannot_be_written_to_is_used(tmp_path: Path) -> None:
    with mounted(tmp_path, 1) as disk:
        surroundings = {"PATH": os.environ["PATH"], "XDG_CACHE_HOME": str(disk)}
        archive = kept(surroundings)
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        assert find_archive(surroundings) == archive
        assert start_archive_build(surroundings) is None


def test_an_archive_that_was_cut_short_is_not_used(surroundings: dict[str, str]) -> None:
    archive = kept(surroundings)
    assert find_archive(surroundings) == archive
    archive.write_bytes(b"class")
    assert find_archive(surroundings) is None
    size_of(archive).write_text("")
    assert find_archive(surroundings) is None
