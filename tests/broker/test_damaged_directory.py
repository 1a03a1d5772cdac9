"""Damaged bytes in the small files of a data directory: one partition is out of service, or the start fails with the
reason. Nothing is renamed, emptied or recreated.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from ottla.broker.embedding.embedded_broker import Broker
from ottla.cli.main import main
from ottla.errors import ConfigError, ErrorCode
from ottla.storage.directory.offset_checkpoints import RECOVERY_POINTS, START_OFFSETS
from ottla.storage.inspection import find
from ottla.storage.inspection.partition_check import PartitionCheck
from tests.broker.damaging import RECORDS, TOPICS, commit, crashed, flipped, records_of, served
from tests.broker.wire import Wire
from tests.storage.no_files import in_the_place_of

pytestmark = [pytest.mark.xdist_group("crashed"), pytest.mark.heavy]  # what they share is made once

ALL = dict.fromkeys(TOPICS, RECORDS)
METADATA = "__cluster_metadata-0/00000000000000000000.log"
CORRUPT = [b"%d" % ErrorCode.CORRUPT_MESSAGE]
OUT_OF_RANGE = [b"%d" % ErrorCode.OFFSET_OUT_OF_RANGE]


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Left by a broker that was killed."""
    return crashed(tmp_path_factory.mktemp("crashed"))


def test_a_killed_brokers_directory_is_served_completely(directory: Path, tmp_path: Path) -> None:
    assert served(shutil.copytree(directory, tmp_path / "copy")) == ALL


def test_a_damaged_byte_of_partition_metadata_affects_at_most_that_partition(directory: Path, tmp_path: Path) -> None:
    outcomes: list[object] = []
    for position, copy in flipped(directory, "t-0/partition.metadata", tmp_path):
        found = served(copy)
        assert isinstance(found, dict), (position, found)
        assert found["u"] == RECORDS, position
        assert found["t"] in (RECORDS, CORRUPT), position
        outcomes.append(found["t"])
    assert outcomes.count(CORRUPT) > len(outcomes) // 2


def test_the_partition_is_named_once_with_the_remedy(
    directory: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    copy = shutil.copytree(directory, tmp_path / "copy")
    (copy / "t-0/partition.metadata").write_text("version: 0\ntopic_id: AAAA\n")
    caplog.set_level(logging.WARNING)
    with Broker(copy) as broker, Wire(broker.bootstrap_servers) as wire:
        for _ in range(5):
            assert records_of(wire, "t") == CORRUPT
        refused = wire.produce("t", b"d")
        assert refused.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
        assert "partition.metadata is damaged" in str(refused.error_message)
    lines = [record.getMessage() for record in caplog.records if "t-0" in record.getMessage()]
    assert len(lines) == 1, lines
    assert lines[0].startswith("t-0 is out of service: ")
    assert f"ottla log repair {copy} --topic-partition t-0" in lines[0]


def test_a_damaged_byte_of_meta_properties_is_reported_or_harmless(directory: Path, tmp_path: Path) -> None:
    for position, copy in flipped(directory, "meta.properties", tmp_path, 2):
        found = served(copy)
        assert found == ALL or (isinstance(found, str) and "meta.properties" in found), (position, found)


def test_a_directory_with_logs_and_without_meta_properties_is_rejected(directory: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(directory, tmp_path / "copy")
    (copy / "meta.properties").unlink()
    assert "holds logs" in str(served(copy))


@pytest.mark.parametrize("name", [RECOVERY_POINTS, START_OFFSETS])
def test_a_damaged_byte_of_a_checkpoint_is_harmless_or_moves_one_start(
    directory: Path, tmp_path: Path, name: str
) -> None:
    for position, copy in flipped(directory, name, tmp_path, 1):
        starts = (copy / name).read_text(encoding="latin-1").splitlines() if name == START_OFFSETS else []
        # A changed digit of a start offset is believed: the records before it look deleted.
        deleted = {line[0]: OUT_OF_RANGE for line in starts if re.fullmatch("[tu] 0 [1-9]", line)}
        found = served(copy)
        # A bit that increases the recorded end of the metadata log looks like a truncated log.
        assert found == {**ALL, **deleted} or "the log ends at offset" in str(found), (position, found)


def test_a_damaged_byte_of_the_metadata_prevents_the_start_or_is_harmless(directory: Path, tmp_path: Path) -> None:
    refused = 0
    for position, copy in flipped(directory, METADATA, tmp_path, 23):
        found = served(copy)
        if isinstance(found, str):
            refused += 1
            assert METADATA in found
            assert "position" in found
            assert "ottla log repair" in found
        else:
            assert found == ALL, position
    assert refused > 5


@pytest.mark.parametrize("gone", ["folder", "log", "bytes"])
def test_a_directory_with_topics_and_without_their_metadata_is_rejected(
    directory: Path, tmp_path: Path, gone: str
) -> None:
    copy = shutil.copytree(directory, tmp_path / "copy")
    if gone == "folder":
        shutil.rmtree(copy / "__cluster_metadata-0")
    elif gone == "log":
        (copy / METADATA).unlink()
    else:
        (copy / METADATA).write_bytes(b"")
    with pytest.raises(
        ConfigError, match=r"__cluster_metadata-0 is missing or empty.*restore it from a backup.*voters"
    ):
        Broker(copy).start()
    assert (copy / "__cluster_metadata-0").exists() == (gone != "folder")


def test_a_partition_with_a_missing_folder_is_not_started_empty(directory: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(directory, tmp_path / "copy")
    shutil.rmtree(copy / "t-0")
    with Broker(copy) as broker, Wire(broker.bootstrap_servers) as wire:
        refused = wire.produce("t", b"d")
        assert refused.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
        assert "t-0 is gone" in str(refused.error_message)
        assert records_of(wire, "u") == RECORDS
    assert not (copy / "t-0").exists()


def test_a_file_instead_of_a_partition_folder_affects_that_partition_only(directory: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(directory, tmp_path / "copy")
    shutil.rmtree(copy / "t-0")
    (copy / "t-0").write_text("a file")
    with Broker(copy) as broker, Wire(broker.bootstrap_servers) as wire:
        assert "t-0 is a file" in str(wire.produce("t", b"d").error_message)
        assert records_of(wire, "u") == RECORDS
    assert (copy / "t-0").read_text() == "a file"


def test_a_group_with_a_missing_log_gets_an_error_and_is_not_started_empty(directory: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(directory, tmp_path / "copy")
    (log,) = (path for path in copy.glob("__consumer_offsets-*/*.log") if path.stat().st_size)
    log.unlink()
    with Broker(copy) as broker, Wire(broker.bootstrap_servers) as wire:
        assert commit(wire, 3) == ErrorCode.UNKNOWN_SERVER_ERROR
        assert {topic: records_of(wire, topic) for topic in TOPICS} == ALL
    assert not list(log.parent.glob("*.log"))
    assert main(["log", "repair", str(copy), "--execute"]) == 0
    with Broker(copy) as broker, Wire(broker.bootstrap_servers) as wire:
        assert commit(wire, 3) == 0


def test_a_folder_instead_of_partition_metadata_affects_that_partition_only(directory: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(directory, tmp_path / "copy")
    (copy / "t-0/partition.metadata").unlink()
    (copy / "t-0/partition.metadata").mkdir()
    assert served(copy) == {"t": CORRUPT, "u": RECORDS}
    assert main(["log", "repair", str(copy), "--execute"]) == 0
    assert served(copy) == ALL


@pytest.mark.parametrize("name", ["00000000000000000000.log", "leader-epoch-checkpoint"])
def test_a_folder_instead_of_a_log_file_affects_that_partition_until_it_is_moved(
    directory: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    copy = shutil.copytree(directory, tmp_path / "copy")
    kept = (copy / "t-0" / name).rename(tmp_path / "kept")
    (copy / "t-0" / name).mkdir()
    assert served(copy) == {"t": CORRUPT, "u": RECORDS}
    (line,) = [message for message in caplog.messages if "out of service" in message]
    assert line.startswith(f"t-0 is out of service: {copy / 't-0' / name} is a folder, where a file belongs; ")
    assert main(["log", "repair", str(copy), "--topic-partition", "t-0", "--execute"]) == 0
    assert (copy / "t-0" / f"{name}.damaged").is_dir()
    kept.rename(copy / "t-0" / name)
    assert served(copy) == ALL


@pytest.mark.parametrize("what", ["a folder", "a pipe", "a socket", "a device"])
@pytest.mark.parametrize("kind", [".index", ".timeindex"])
def test_another_file_type_instead_of_an_index_is_logged_and_harmless(
    directory: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture, kind: str, what: str
) -> None:
    copy = shutil.copytree(directory, tmp_path / "copy")
    index = copy / "t-0" / f"{0:020d}{kind}"
    in_the_place_of(index, what)
    for _ in range(2):
        caplog.clear()
        assert served(copy) == ALL
        assert (copy / ".kafka_cleanshutdown").exists()
        assert [str(index) in message for message in caplog.messages if f"is {what}" in message] in ([True], [])
    assert main(["log", "repair", str(copy), "--topic-partition", "t-0", "--execute"]) == 0
    assert served(copy) == ALL
    assert index.is_file()


@pytest.mark.parametrize("kind", ["a folder", "a pipe", "a link that leads nowhere"])
@pytest.mark.parametrize(
    "name", ["leader-epoch-checkpoint", f"{0:020d}.log", f"{0:020d}.txnindex", f"{1:020d}.snapshot"]
)
def test_another_file_type_is_also_found_after_a_clean_stop(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, name: str, kind: str
) -> None:
    with Broker(tmp_path) as broker, Wire(broker.bootstrap_servers) as wire:
        wire.create("t")
        assert wire.produce("t", b"d").error_code == 0
    in_the_place_of(tmp_path / "t-0" / name, kind)
    with Broker(tmp_path) as broker, Wire(broker.bootstrap_servers) as wire:
        for _ in range(2):
            assert records_of(wire, "t") == CORRUPT
    assert [message.partition(";")[0] for message in caplog.messages if "t-0" in message] == [
        f"t-0 is out of service: {tmp_path / 't-0' / name} is {kind}, where a file belongs"
    ]
    (check,) = (each for each in find(tmp_path).run(lambda size: None) if each.faults and each.folder.name == "t-0")
    assert str(check.faults[0]).startswith(f"{tmp_path / 't-0' / name}: is {kind}, where a file belongs")
    assert main(["log", "repair", str(tmp_path), "--execute"]) == 0
    assert os.path.lexists(tmp_path / "t-0" / f"{name}.damaged")


def test_an_index_that_links_to_itself_is_logged_and_harmless(
    directory: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    copy = shutil.copytree(directory, tmp_path / "copy")
    in_the_place_of(copy / "t-0" / f"{0:020d}.index", "a link")
    assert served(copy) == ALL
    assert (copy / ".kafka_cleanshutdown").exists()
    assert len([message for message in caplog.messages if "is a link that leads nowhere" in message]) == 1


def test_verify_reports_renamed_folders(directory: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    copy = shutil.copytree(directory, tmp_path / "copy")
    (copy / "t-0").rename(tmp_path / "t-0")
    (copy / "u-0").rename(copy / "t-0")
    (tmp_path / "t-0").rename(copy / "u-0")
    assert main(["log", "verify", str(copy)]) == 1
    lines = [line for line in capsys.readouterr().out.splitlines() if "the folder is of topic id" in line]
    assert [line.split(":")[1].strip() for line in lines] == [
        str(copy / name / "partition.metadata") for name in ("t-0", "u-0")
    ]


def test_verify_and_repair_know_the_topics_of_a_second_directory_by_the_metadata_of_the_first(
    directory: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = shutil.copytree(directory, tmp_path / "first"), tmp_path / "second"
    second.mkdir()
    shutil.copyfile(first / "meta.properties", second / "meta.properties")
    (first / "t-0").rename(second / "u-0")
    (first / "recovery-point-offset-checkpoint").unlink()  # which would miss it in the first
    paths = [str(second), str(first)]
    for arguments, reported in (([paths[0]], 0), (paths, 1), ([paths[0], "--metadata", paths[1]], 1)):
        main(["log", "verify", *arguments])
        lines = capsys.readouterr().out.splitlines()
        assert len([line for line in lines if "the cluster's metadata say" in line and "u-0" in line]) == reported
    main(["log", "repair", paths[0], "--metadata", paths[1]])
    assert "and write topic id" in capsys.readouterr().out


def test_verify_reports_a_missing_folder(directory: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(directory, tmp_path / "copy")
    shutil.rmtree(copy / "t-0")
    *_, own = find(copy).run(lambda size: None)
    assert (own.faults, [str(note) for note in own.notes]) == (
        [],
        [f"{copy / 't-0'}: is missing, unless its topic was being deleted; a start reports it"],
    )
    served(copy)  # which stops cleanly: now everything is known that was deleted
    *_, own = find(copy).run(lambda size: None)
    assert [str(fault) for fault in own.faults] == [
        f"{copy / 't-0'}: is gone, though there was a log in it up to offset 3"
    ]


OWN_FILES = [
    ".kafka_cleanshutdown",
    ".lock",
    "cleaner-offset-checkpoint",
    "log-start-offset-checkpoint",
    "meta.properties",
    "recovery-point-offset-checkpoint",
    "replication-offset-checkpoint",
]


@pytest.mark.parametrize("kind", ["folder", "pipe", "socket", "device"])
@pytest.mark.parametrize("name", OWN_FILES)
def test_another_file_type_instead_of_a_file_of_the_directory_is_a_one_line_error(
    directory: Path, tmp_path: Path, name: str, kind: str
) -> None:
    copy = shutil.copytree(directory, tmp_path / "copy")
    in_the_place_of(copy / name, f"a {kind}")
    assert served(copy) == (
        f"data directory {copy} cannot be used: {copy / name} is a {kind}, where a file belongs; "
        f"move that {kind} away or choose another directory"
    )


@pytest.mark.parametrize("name", ["recovery-point-offset-checkpoint.tmp", ".kafka_cleanshutdown.tmp"])
def test_a_pipe_instead_of_a_temporary_file_prevents_only_the_clean_shutdown_mark(
    directory: Path, tmp_path: Path, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    copy = shutil.copytree(directory, tmp_path / "copy")
    os.mkfifo(copy / name)
    assert served(copy) == ALL
    assert not (copy / ".kafka_cleanshutdown").exists()
    assert any(f"it is a pipe, where a file belongs ({copy / name})" in message for message in caplog.messages)


@pytest.mark.parametrize(
    ("kind", "what"),
    [
        ("a folder", "a folder"),
        ("a link to itself", "a link that leads nowhere"),
        ("a pipe", "a pipe"),
        ("a socket", "a socket"),
        ("a device", "a device"),
    ],
)
def test_another_file_type_instead_of_the_metadata_log_is_a_one_line_error(
    directory: Path, tmp_path: Path, kind: str, what: str
) -> None:
    copy = shutil.copytree(directory, tmp_path / "copy")
    in_the_place_of(copy / METADATA, kind)
    reported = served(copy)
    assert isinstance(reported, str)
    assert f"{copy / METADATA} is {what}, where a file belongs: move it away" in reported
    assert f"restore {copy}/__cluster_metadata-0 from a backup" in reported


def test_verify_continues_after_an_unreadable_folder(
    directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = shutil.copytree(directory, tmp_path / "copy")
    run = PartitionCheck.run

    def denied(check: PartitionCheck, progress: Callable[[int], None]) -> None:
        if check.folder.name == "t-0":
            raise PermissionError(13, "Permission denied", str(copy / "t-0/x"))
        run(check, progress)

    monkeypatch.setattr(PartitionCheck, "run", denied)  # root, which runs many tests, is never denied
    found = {check.folder.name: check for check in find(copy).run(lambda size: None)}
    (fault,) = found["t-0"].faults
    assert (fault.file, fault.reason.startswith("cannot be read")) == (copy / "t-0/x", True)
    assert found["u-0"].records == len(RECORDS)
