"""Folders of deleted partitions, in any directory."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from ottla import Broker
from ottla.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.storage.files.durable import remove_tree
from tests.broker.wire import Wire, values

DELETION = DeleteTopicsRequest([DeleteTopicState("t")], timeout_ms=60_000)


def test_a_partition_linked_to_another_disk_is_served_and_deleted_with_its_topic(tmp_path: Path) -> None:
    here, elsewhere = tmp_path / "here", tmp_path / "elsewhere"
    with Broker(here) as broker, Wire(broker.bootstrap_servers) as wire:
        wire.create("t")
        wire.produce("t", b"a")
    (here / "t-0").rename(elsewhere)
    (here / "t-0").symlink_to(elsewhere)
    with Broker(here) as broker, Wire(broker.bootstrap_servers) as wire:
        wire.produce("t", b"b")
        assert values(wire.fetch("t")) == [b"a", b"b"]
        assert wire.ask(DELETION, 6).responses[0].error_code == 0
        wire.create("t")
        assert values(wire.fetch("t")) == []
    with Broker(here):
        assert [path.name for path in here.glob("t-*")] == ["t-0"]
    assert not elsewhere.exists()


def test_a_start_removes_a_deleted_topic_that_is_a_link(tmp_path: Path) -> None:
    here, elsewhere = tmp_path / "here", tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / f"{0:020d}.log").touch()
    here.mkdir()
    doomed = here / f"t-0.{'a' * 32}-delete"
    doomed.symlink_to(elsewhere)
    with Broker(here):
        pass
    assert not doomed.is_symlink()
    assert not elsewhere.exists()


def test_a_dangling_link_is_removed_and_a_missing_path_is_ignored(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "gone")
    remove_tree(link)
    remove_tree(link)
    assert list(tmp_path.iterdir()) == []


def test_a_failed_removal_is_reported_and_the_rest_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "t-0"
    folder.mkdir()
    for name in "abc":
        (folder / name).touch()
    unlink = os.unlink

    def refuse(path: Any, **more: Any) -> None:
        if os.fspath(path).endswith("b"):
            raise PermissionError(errno.EPERM, os.strerror(errno.EPERM), path)
        unlink(path, **more)

    monkeypatch.setattr(os, "unlink", refuse)
    remove_tree(folder)
    assert [path.name for path in folder.iterdir()] == ["b"]
    assert f"{folder} is not needed any more and stays: cannot remove" in caplog.text
    assert os.strerror(errno.EPERM) in caplog.text
