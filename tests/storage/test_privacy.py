"""The permissions of a data directory."""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ottla import Broker
from ottla.storage.directory.meta_properties import MetaProperties
from ottla.storage.directory.privacy import is_open_to_others

ADD = "SCRAM-SHA-256=[name=alice,password=a]"


@pytest.fixture
def usual_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.usefixtures("usual_umask")
def test_a_new_directory_is_private_and_an_existing_one_keeps_its_mode(
    tmp_path: Path,
) -> None:
    with Broker(tmp_path / "parent" / "made"):
        pass
    assert mode_of(tmp_path / "parent" / "made") == 0o700
    assert mode_of(tmp_path / "parent") == 0o755
    (tmp_path / "there").mkdir(mode=0o755)
    with Broker(tmp_path / "there"):
        pass
    assert mode_of(tmp_path / "there") == 0o755


@pytest.mark.usefixtures("usual_umask")
def test_a_formatted_directory_is_private(tmp_path: Path) -> None:
    MetaProperties.format(tmp_path / "made", 1, "cluster")
    assert mode_of(tmp_path / "made") == 0o700


@pytest.mark.parametrize(("add_scram", "is_warned"), [(ADD, True), (None, False)])
def test_a_broker_warns_if_a_directory_with_secrets_is_open_to_others(
    tmp_path: Path,
    add_scram: str | None,
    is_warned: bool,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from ottla.broker import broker_role

    # Directories of pytest are below one with mode 0700.
    monkeypatch.setattr(broker_role, "is_open_to_others", lambda path: mode_of(path) & 0o001 > 0)
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o755)
    users: dict[str, Any] = {} if add_scram is None else {"add_scram": add_scram}
    with caplog.at_level(logging.WARNING, "ottla.broker.server"):
        with Broker(tmp_path / "open", **users):
            pass
        with Broker(tmp_path / "closed", **users):
            pass
    said = [record.getMessage() for record in caplog.records if "chmod 700" in record.getMessage()]
    assert len(said) == is_warned
    assert all(str(tmp_path / "open") in line for line in said)


def test_a_directory_is_open_only_if_all_above_it_are(tmp_path: Path) -> None:
    inner = tmp_path / "outer" / "inner"
    inner.mkdir(parents=True)
    tmp_path.chmod(0o755)
    (tmp_path / "outer").chmod(0o755)
    inner.chmod(0o755)
    above = [each for each in tmp_path.resolve().parents if not mode_of(each) & 0o001]
    assert is_open_to_others(inner) == (not above)
    (tmp_path / "outer").chmod(0o750)
    assert not is_open_to_others(inner)
    assert is_open_to_others(Path("/"))
