"""Appending, in its compiled form and in the plain one: the same calls make the same files and the same state."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ottla.errors import CorruptRecordError, KafkaError
from ottla.storage.log import Log
from ottla.storage.log import log as log_module
from ottla.storage.log_config import LogConfig
from tests.plain import is_compiled, plain
from tests.storage.batches import NOW, batch, everything, open_log
from tests.storage.producing import end, produced

SETTINGS: dict[str, dict[str, Any]] = {
    "as it comes": {"segment_bytes": 700, "index_interval_bytes": 100},
    "the broker's clock": {"message_timestamp_type": "LogAppendTime", "segment_bytes": 700},
    "another compression": {"compression_type": "gzip"},
    "small indexes": {"segment_index_bytes": 24, "index_interval_bytes": 0},
    "rolled by age": {"segment_ms": 40},
}
FILES = ("*.log", "*.index", "*.timeindex", "*.txnindex", "leader-epoch-checkpoint")


def history(log: Log) -> list[object]:
    """The result of an append, accepted or rejected."""
    taken = batch(b"a", timestamps=[NOW])
    calls: list[tuple[bytes | bytearray, int]] = [
        (taken, 0),
        (batch(b"b", b"c" * 90) + batch(b"d"), 0),
        (produced(7, 0, 3), 0),
        (produced(7, 0, 3), 0),
        (produced(7, 9), 0),
        (produced(8, 0, transactional=True), 2),
        (taken[:-1], 2),
        (b"", 2),
        (batch(bytes(2000)), 2),
        (batch(b"late", timestamps=[NOW + 10**9]), 2),
    ]
    said: list[object] = []
    for number, (data, epoch) in enumerate(calls * 3):
        try:
            said.append(log.append(bytearray(data), leader_epoch=epoch, now_ms=NOW + number * 17))
        except (CorruptRecordError, KafkaError) as error:
            said.append(f"{type(error).__name__} {error}".replace(str(log.directory), "here"))
    said.append(end(log, 8, commit=False))
    return said


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_both_forms_make_the_same_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any]
) -> None:
    config = LogConfig(**settings)
    form = plain("ottla.storage.log.append_path")
    assert not is_compiled(form)
    ours = open_log(tmp_path / "compiled" / "t-0", config)
    said = history(ours)
    theirs = open_log(tmp_path / "plain" / "t-0", config)
    with monkeypatch.context() as patch:
        patch.setattr(form, "check_incoming", plain("ottla.storage.validation.incoming").check_incoming)
        patch.setattr(log_module, "append_batches", form.append_batches)
        reported = history(theirs)
    assert reported == said
    assert len([each for each in said if isinstance(each, str)]) >= 9, "some are refused"
    assert everything(theirs) == everything(ours) != b""
    assert theirs.bases == ours.bases
    for each in (ours, theirs):
        each.close()
    for pattern in FILES:
        files = [sorted(each.directory.glob(pattern)) for each in (ours, theirs)]
        assert [file.name for file in files[0]] == [file.name for file in files[1]]
        assert [file.read_bytes() for file in files[0]] == [file.read_bytes() for file in files[1]], pattern
