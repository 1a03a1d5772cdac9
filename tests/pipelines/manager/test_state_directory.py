"""The folder of a pipeline."""

from __future__ import annotations

import fcntl
import shutil
import threading
from pathlib import Path

import pytest

from ottla.errors import ConfigError
from ottla.pipelines.manager.fingerprint import Fingerprint
from ottla.pipelines.manager.state_directory import StateDirectory

A, B = Fingerprint("topic a"), Fingerprint("topic b")


def begun(folder: Path) -> StateDirectory:
    """One that has a batch."""
    home = StateDirectory(folder, "p")
    (home.checkpoint / "offsets").mkdir(parents=True)
    home.write_fingerprint(A)
    return home


def test_a_pipeline_that_was_started_continues_only_with_the_same_fingerprint(tmp_path: Path) -> None:
    home = begun(tmp_path)
    assert home.find_conflict(A) is None
    reported = home.find_conflict(B) or ""
    assert "its source was topic a and is topic b; undo the change, or start again under another name" in reported


def test_a_pipeline_without_a_batch_may_be_anything(tmp_path: Path) -> None:
    home = StateDirectory(tmp_path, "p")
    home.folder.mkdir()
    home.write_fingerprint(A)
    assert (home.is_new, home.find_conflict(B)) == (True, None)


def test_two_managers_do_not_run_one_pipeline(tmp_path: Path) -> None:
    first, second = StateDirectory(tmp_path, "p"), StateDirectory(tmp_path, "p")
    first.lock()
    with pytest.raises(ConfigError, match=r"pipeline 'p' is being run by process \d+; stop that one first"):
        second.lock()
    assert second.is_locked()
    first.unlock()
    assert not second.is_locked()
    second.lock()
    second.unlock()


def test_a_read_only_caller_is_not_taken_for_another_manager(tmp_path: Path) -> None:
    home = StateDirectory(tmp_path, "p")
    home.lock()
    home.unlock()
    looking = (home.folder / "lock").open(encoding="utf-8")
    fcntl.flock(looking, fcntl.LOCK_SH)
    threading.Timer(0.4, looking.close).start()
    home.lock()
    home.unlock()


def test_a_folder_that_cannot_be_made_is_reported(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file", encoding="utf-8")
    with pytest.raises(ConfigError, match="choose other checkpoints"):
        StateDirectory(tmp_path / "state", "p").lock()


def test_a_partly_written_status_is_ignored(tmp_path: Path) -> None:
    home = begun(tmp_path)
    home.write_status({"state": "running"})
    assert home.status() == {"state": "running"}
    (home.folder / "status.json").write_text('{"sta', encoding="utf-8")
    assert home.status() is None


def test_a_folder_that_was_taken_away_or_made_again_is_another(tmp_path: Path) -> None:
    home = StateDirectory(tmp_path, "p")
    home.lock()
    assert home.is_there()
    shutil.rmtree(home.folder)
    assert not home.is_there()
    home.write_status({"state": "running"})
    assert not home.folder.exists()
    other = StateDirectory(tmp_path, "p")
    other.lock()
    assert not home.is_there()
    other.unlock()
    home.unlock()


def test_requested_states_outlive_the_manager(tmp_path: Path) -> None:
    home = StateDirectory(tmp_path, "p")
    home.lock()
    assert home.target is None
    home.set_target("paused")
    home.unlock()
    assert StateDirectory(tmp_path, "p").target == "paused"
    home.set_target(None)
    assert StateDirectory(tmp_path, "p").target is None
