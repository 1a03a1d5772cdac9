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
    begin,
    have_archive_made,
    publish,
    reading,
    size_of,
    usable,
)
from tests.small_disk import mounted

pytestmark = pytest.mark.behaviour("D1")


@pytest.fixture
def surroundings(tmp_path: Path) -> dict[str, str]:
    """A user with a cache of his own, who has decided nothing."""
    return {"PATH": os.environ["PATH"], "XDG_CACHE_HOME": str(tmp_path)}


def kept(surroundings: dict[str, str], mode: int = 0o600) -> Path:
    """An archive where it is looked for."""
    archive = archive_path(surroundings)
    archive.parent.mkdir(mode=0o700)
    archive.write_bytes(b"classes")
    archive.chmod(mode)
    size_of(archive).write_text("7")
    return archive


def test_java_is_told_of_an_archive_that_is_there_and_of_none_that_is_not(surroundings: dict[str, str]) -> None:
    with archived_classes(surroundings):
        assert OPTIONS not in surroundings
    archive = kept(surroundings)
    with archived_classes(surroundings):
        assert surroundings[OPTIONS] == reading(archive)
    assert OPTIONS not in surroundings


def test_other_options_of_the_user_stay_and_come_back(surroundings: dict[str, str]) -> None:
    archive = kept(surroundings)
    surroundings[OPTIONS] = "-Xmx1g"
    with archived_classes(surroundings):
        assert surroundings[OPTIONS] == f"-Xmx1g {reading(archive)}"
    assert surroundings[OPTIONS] == "-Xmx1g"


@pytest.mark.parametrize("decided", ["-Xshare:off", "-XX:SharedArchiveFile=/mine.jsa", "-XX:ArchiveClassesAtExit=x"])
def test_who_decides_for_himself_has_his_way(surroundings: dict[str, str], decided: str) -> None:
    surroundings[OPTIONS] = decided
    kept(surroundings)
    with archived_classes(surroundings):
        assert surroundings[OPTIONS] == decided
    assert have_archive_made(surroundings) is None


@pytest.mark.parametrize("mode", [0o620, 0o602])
def test_an_archive_that_others_may_write_is_not_used(surroundings: dict[str, str], mode: int) -> None:
    kept(surroundings, mode)
    assert usable(surroundings) is None


def test_nor_is_one_in_a_folder_in_which_others_may_put_it(surroundings: dict[str, str]) -> None:
    kept(surroundings).parent.chmod(0o777)
    assert usable(surroundings) is None


def test_other_jars_have_another_archive(surroundings: dict[str, str], tmp_path: Path) -> None:
    before = archive_path(surroundings)
    surroundings["SPARK_HOME"] = str(tmp_path)
    (tmp_path / "jars").mkdir()
    jar = tmp_path / "jars" / "spark.jar"
    jar.write_bytes(b"1")
    another = archive_path(surroundings)
    jar.write_bytes(b"12")
    assert len({before, another, archive_path(surroundings)}) == 3


def test_without_a_java_or_a_folder_nothing_is_made_and_nobody_is_told(tmp_path: Path) -> None:
    assert usable({"PATH": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)}) is None
    assert have_archive_made({"PATH": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)}) is None
    (tmp_path / "file").touch()
    assert have_archive_made({"PATH": os.environ["PATH"], "XDG_CACHE_HOME": str(tmp_path / "file")}) is None


def test_one_makes_it_and_tries_again_after_a_day(surroundings: dict[str, str]) -> None:
    archive = archive_path(surroundings)
    assert begin(archive)
    assert not begin(archive)
    long_ago = time.time() - 90_000
    os.utime(archive.with_suffix(".tried"), (long_ago, long_ago))
    assert begin(archive)


def test_who_was_killed_while_he_made_one_leaves_nothing_behind_for_good(surroundings: dict[str, str]) -> None:
    archive = archive_path(surroundings)
    left, under_way = archive.parent / f"{MAKING}left", archive.parent / f"{MAKING}now"
    for folder in (left, under_way):
        folder.mkdir(parents=True)
        (folder / "classes.jsa").touch()
    archive.parent.chmod(0o700)
    os.utime(left, (time.time() - 90_000,) * 2)
    assert begin(archive)
    assert (left.exists(), under_way.exists()) == (False, True)


def test_none_is_made_where_it_could_not_be_used(surroundings: dict[str, str]) -> None:
    folder = archive_path(surroundings).parent
    folder.mkdir()
    folder.chmod(0o777)
    assert have_archive_made(surroundings) is None
    assert list(folder.iterdir()) == []


@pytest.fixture
def maker(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A maker that writes down where it runs and for whom; the real one takes minutes of a busy machine."""
    monkeypatch.setattr("ottla.spark.driver.class_archive.MAKER", "maker")
    folder = tmp_path / "modules"
    folder.mkdir()
    (folder / "maker.py").write_text("import os, sys; open('made', 'w').write(f'{os.getcwd()} {sys.argv[1]}')")
    return folder


def test_the_maker_works_in_the_cache_where_no_module_of_the_user_is_in_its_way(
    surroundings: dict[str, str], maker: Path
) -> None:
    process = have_archive_made(surroundings | {"PYTHONPATH": str(maker)})
    assert process is not None
    assert process.wait(60) == 0
    archive = archive_path(surroundings)
    assert (archive.parent / "made").read_text() == f"{archive.parent} {archive}"


def test_one_that_was_cut_short_is_made_again(surroundings: dict[str, str], maker: Path) -> None:
    kept(surroundings).write_bytes(b"class")
    process = have_archive_made(surroundings | {"PYTHONPATH": str(maker)})
    assert process is not None
    assert process.wait(60) == 0


def test_what_is_there_is_not_made_again(surroundings: dict[str, str]) -> None:
    kept(surroundings)
    assert have_archive_made(surroundings) is None


def test_a_new_one_takes_the_place_of_those_that_nobody_uses(surroundings: dict[str, str], tmp_path: Path) -> None:
    used, unused = kept(surroundings), archive_path(surroundings).with_name("spark-classes-old.jsa")
    unused.touch()
    os.utime(unused, (time.time() - UNUSED - 60,) * 2)
    made, new = tmp_path / "made", used.with_name("spark-classes-new.jsa")
    made.write_bytes(b"classes")
    assert begin(new)
    publish(made, new)
    assert sorted(used.parent.iterdir()) == sorted([used, size_of(used), new, size_of(new)])


def test_one_on_a_disk_that_cannot_be_written_to_is_used(tmp_path: Path) -> None:
    with mounted(tmp_path, 1) as disk:
        surroundings = {"PATH": os.environ["PATH"], "XDG_CACHE_HOME": str(disk)}
        archive = kept(surroundings)
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        assert usable(surroundings) == archive
        assert have_archive_made(surroundings) is None


def test_an_archive_that_was_cut_short_is_not_used(surroundings: dict[str, str]) -> None:
    archive = kept(surroundings)
    assert usable(surroundings) == archive
    archive.write_bytes(b"class")
    assert usable(surroundings) is None
    size_of(archive).write_text("")
    assert usable(surroundings) is None
