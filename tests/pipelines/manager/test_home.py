"""The folder of a pipeline."""

from __future__ import annotations

import fcntl
import shutil
import threading
from pathlib import Path

import pytest

from ottla.errors import ConfigError
from ottla.pipelines.manager.fingerprint import Fingerprint
from ottla.pipelines.manager.home import Home

A, B = Fingerprint("topic a"), Fingerprint("topic b")


def begun(folder: Path) -> Home:
    """One that has a batch."""
    home = Home(folder, "p")
    (home.checkpoint / "offsets").mkdir(parents=True)
    home.remember(A)
    return home


def test_a_pipeline_that_was_begun_goes_on_only_as_what_it_was(tmp_path: Path) -> None:
    home = begun(tmp_path)
    assert home.refusal(A) is None
    told = home.refusal(B) or ""
    assert "its source was topic a and is topic b; take the change back, or begin anew under another name" in told


def test_a_pipeline_without_a_batch_may_be_anything(tmp_path: Path) -> None:
    home = Home(tmp_path, "p")
    home.folder.mkdir()
    home.remember(A)
    assert (home.is_new, home.refusal(B)) == (True, None)


def test_two_managers_do_not_run_one_pipeline(tmp_path: Path) -> None:
    first, second = Home(tmp_path, "p"), Home(tmp_path, "p")
    first.take()
    with pytest.raises(ConfigError, match=r"pipeline 'p' is being run by process \d+; stop that one first"):
        second.take()
    assert second.is_taken()
    first.give_back()
    assert not second.is_taken()
    second.take()
    second.give_back()


def test_who_only_looks_is_not_taken_for_another_manager(tmp_path: Path) -> None:
    home = Home(tmp_path, "p")
    home.take()
    home.give_back()
    looking = (home.folder / "lock").open(encoding="utf-8")
    fcntl.flock(looking, fcntl.LOCK_SH)
    threading.Timer(0.4, looking.close).start()
    home.take()
    home.give_back()


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file", encoding="utf-8")
    with pytest.raises(ConfigError, match="choose other checkpoints"):
        Home(tmp_path / "state", "p").take()


def test_what_was_cut_off_while_it_was_written_is_as_if_it_were_not_there(tmp_path: Path) -> None:
    home = begun(tmp_path)
    home.tell_status({"state": "running"})
    assert home.status() == {"state": "running"}
    (home.folder / "status.json").write_text('{"sta', encoding="utf-8")
    assert home.status() is None


def test_a_folder_that_was_taken_away_or_made_anew_is_another(tmp_path: Path) -> None:
    home = Home(tmp_path, "p")
    home.take()
    assert home.is_there()
    shutil.rmtree(home.folder)
    assert not home.is_there()
    home.tell_status({"state": "running"})
    assert not home.folder.exists()
    other = Home(tmp_path, "p")
    other.take()
    assert not home.is_there()
    other.give_back()
    home.give_back()


def test_what_somebody_wants_outlives_the_manager(tmp_path: Path) -> None:
    home = Home(tmp_path, "p")
    home.take()
    assert home.target is None
    home.aim("paused")
    home.give_back()
    assert Home(tmp_path, "p").target == "paused"
    home.aim(None)
    assert Home(tmp_path, "p").target is None
