"""Facts about intact and damaged data directories, and about paths that are none."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from ottla import Broker, Producer
from ottla.cli.main import main
from tests.cli.doctor.conftest import Run

AWAY = ("--bootstrap-server", "no-such-host.invalid:9092")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """The data directory of a stopped broker, with some records."""
    path = tmp_path / "data"
    with Broker(data_dir=path) as broker, Producer(bootstrap_servers=broker.bootstrap_servers) as producer:
        for _ in range(3):
            producer.send("orders", b"v" * 5000)
            producer.flush()
    return path


def of_data(run: Run, data: Path, *words: str) -> list[tuple[str, str]]:
    return [(each["level"], each["seen"]) for each in run(*AWAY, "--data-dir", data, *words)[1]["data"]]


def test_an_intact_directory_is_reported_as_intact(run: Run, data: Path) -> None:
    ((level, seen),) = of_data(run, data)
    assert (level, "by headers alone" in seen) == ("ok", True)
    ((level, seen),) = of_data(run, data, "--verify")
    assert (level, "by every byte" in seen) == ("ok", True)


def test_headers_show_a_torn_end_and_every_byte_shows_the_rest(run: Run, data: Path) -> None:
    (log,) = data.glob("orders-0/*.log")
    whole = log.read_bytes()
    log.write_bytes(whole[:-100])
    ((level, seen),) = of_data(run, data)
    assert (level, "is torn" in seen, str(log) in seen) == ("problem", True, True)
    log.write_bytes(whole[:3000] + b"!" + whole[3001:])
    assert of_data(run, data)[0][0] == "ok"
    assert of_data(run, data, "--verify")[0][0] == "problem"


def test_decreasing_offsets_and_unreadable_files_are_reported_as_faults(run: Run, data: Path) -> None:
    (log,) = data.glob("orders-0/*.log")
    whole = log.read_bytes()
    log.write_bytes(whole + whole)
    assert "and 3 was due" in of_data(run, data)[0][1]
    log.write_bytes(whole)
    (data / "replication-offset-checkpoint").write_text("nonsense")
    assert of_data(run, data)[0][0] == "problem"


def test_after_a_crash_a_torn_end_is_no_damage(run: Run, data: Path) -> None:
    (data / ".kafka_cleanshutdown").unlink()
    (log,) = data.glob("orders-0/*.log")
    log.write_bytes(log.read_bytes()[:-100])
    assert [level for level, _ in of_data(run, data)] == ["ok", "warning"]


def test_one_of_several_directories_has_the_topic_ids_for_all(run: Run, data: Path, tmp_path: Path) -> None:
    second = tmp_path / "second"
    second.mkdir()
    for name in ("meta.properties", ".kafka_cleanshutdown"):
        shutil.copy(data / name, second)
    shutil.move(data / "orders-0", second)
    metadata = second / "orders-0" / "partition.metadata"
    metadata.write_text(metadata.read_text()[:-10])
    together = run(*AWAY, "--data-dir", data, "--data-dir", second)[1]["data"]
    named = run(*AWAY, "--data-dir", second, "--metadata", data)[1]["data"]
    for found in (together[-1], named[0]):
        assert "partition.metadata" in found["seen"]
        assert f"ottla log repair {second} --metadata {data}" in found["remedy"]


def test_a_directory_without_an_identity_is_a_problem(run: Run, data: Path) -> None:
    (data / "meta.properties").unlink()
    ((level, seen),) = of_data(run, data)
    assert (level, "meta.properties: is missing, and no broker starts on" in seen) == ("problem", True)


def test_metadata_without_a_directory_is_a_usage_error(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--metadata", str(data)]) == 2
    assert "add --data-dir" in capsys.readouterr().err


def test_a_path_that_is_no_data_directory_is_a_problem(run: Run, tmp_path: Path) -> None:
    assert "holds no logs" in of_data(run, tmp_path)[0][1]
    assert of_data(run, tmp_path / "nowhere") == [("problem", f"{tmp_path / 'nowhere'}: No such file or directory")]


def test_two_directories_with_one_id_are_a_problem_that_prevents_a_start(run: Run, data: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    copy.mkdir()
    shutil.copy(data / "meta.properties", copy)
    reported = [each["seen"] for each in run(*AWAY, "--data-dir", data, "--data-dir", copy)[1]["data"]]
    assert len([each for each in reported if f"has the directory.id of {data}, as a copy of it has" in each]) == 1
    reported = [each["seen"] for each in run(*AWAY, "--data-dir", data, "--data-dir", data)[1]["data"]]
    assert not any("directory.id" in each for each in reported)
