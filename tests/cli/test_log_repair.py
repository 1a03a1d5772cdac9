"""`ottla log repair`: damaged bytes are set aside, the rest keeps its offsets, and nothing is deleted."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from ottla import Consumer, Producer
from ottla.broker.embedding.embedded_broker import Broker
from ottla.errors import ConfigError
from ottla.model import OffsetAndMetadata, TopicPartition
from ottla.records.batch import iter_headers
from ottla.storage.inspection import find
from tests.cli.conftest import ottla

LOG = f"{0:020d}.log"
BATCHES = 6
T0 = TopicPartition("t", 0)


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory with topic t (six batches of one record, three in the first segment) and a group at offset 5."""
    path = tmp_path_factory.mktemp("original")
    with Broker(path, offsets_topic_num_partitions=1) as broker:
        servers = broker.bootstrap_servers
        with Producer(bootstrap_servers=servers) as producer:
            for number in range(BATCHES):
                producer.send("t", b"value-%d" % number).result(30)
        with Consumer(bootstrap_servers=servers, group_id="g") as consumer:
            consumer.assign([T0])
            for offset in (1, 5):
                consumer.commit({T0: OffsetAndMetadata(offset)})
    return path


@pytest.fixture
def directory(original: Path, tmp_path: Path) -> Path:
    return shutil.copytree(original, tmp_path / "data")


def read(directory: Path) -> dict[int, bytes | None]:
    """The records of t, by offset, and one more that is written now."""
    found: dict[int, bytes | None] = {}
    with Broker(directory) as broker:
        with Producer(bootstrap_servers=broker.bootstrap_servers) as producer:
            last = producer.send("t", b"new").result(30).offset
        with Consumer(bootstrap_servers=broker.bootstrap_servers, auto_offset_reset="earliest") as consumer:
            consumer.assign([T0])
            while last not in found:
                found |= {record.offset: record.value for record in consumer.poll(timeout=30)}
    return found


def committed(directory: Path) -> int:
    with (
        Broker(directory) as broker,
        Consumer(bootstrap_servers=broker.bootstrap_servers, group_id="g") as consumer,
    ):
        offset = consumer.committed([T0])[T0]
        assert offset is not None
        return offset.offset


def flip_value(directory: Path, number: int) -> None:
    path = directory / "t-0" / LOG
    data = bytearray(path.read_bytes())
    data[data.index(b"value-%d" % number)] ^= 4
    path.write_bytes(data)


def flip_header(directory: Path, folder: str, number: int, byte: int) -> None:
    path = directory / folder / LOG
    data = bytearray(path.read_bytes())
    positions = [position for position, _ in iter_headers(data)]
    data[positions[number] + byte] ^= 0x40
    path.write_bytes(data)


def expected(*lost: int) -> dict[int, bytes]:
    return {n: b"value-%d" % n for n in range(BATCHES) if n not in lost} | {BATCHES: b"new"}


@pytest.mark.parametrize(
    ("damage", "lost"),
    [
        (lambda d: flip_value(d, 2), 2),
        (lambda d: flip_value(d, BATCHES - 1), BATCHES - 1),
        (lambda d: flip_header(d, "t-0", 3, 16), 3),  # magic
        (lambda d: flip_header(d, "t-0", 3, 9), 3),  # length, larger
        (lambda d: flip_header(d, "t-0", 1, 5), 1),  # base offset
    ],
    ids=["value", "last", "magic", "length", "offset"],
)
def test_intact_records_are_served_at_their_offsets_and_the_damaged_rest_is_kept(
    directory: Path, damage: Callable[[Path], None], lost: int
) -> None:
    damage(directory)
    before = (directory / "t-0" / LOG).read_bytes()
    shown = ottla("log", "repair", str(directory))
    assert "nothing was changed; add --execute" in shown.out
    assert f"offsets {lost} to {lost}" in shown.out or "position" in shown.out
    assert (directory / "t-0" / LOG).read_bytes() == before
    done = ottla("log", "repair", str(directory), "--topic-partition", "t-0", "--execute")
    assert done.status == 0
    (aside,) = (directory / "t-0").glob("*.damaged")
    assert aside.read_bytes() in before
    assert len(aside.read_bytes()) + (directory / "t-0" / LOG).stat().st_size == len(before)
    assert read(directory) == expected(lost)
    assert [check.faults for check in find(directory).run(lambda size: None) if check.faults] == []
    assert "nothing to repair" in ottla("log", "repair", str(directory)).out


def test_a_lost_end_is_no_longer_reported_after_the_user_accepts_the_loss(directory: Path) -> None:
    path = directory / "t-0" / LOG
    position = [position for position, _ in iter_headers(path.read_bytes())][4]
    with path.open("r+b") as file:
        file.truncate(position)
    done = ottla("log", "repair", str(directory), "--execute")
    assert "did go on at offset 6, so that none is given twice" in done.out
    assert [check.faults for check in find(directory).run(lambda size: None) if check.faults] == []
    assert read(directory) == expected(4, 5)
    assert [check.faults for check in find(directory).run(lambda size: None) if check.faults] == []


def test_a_damaged_group_log_loses_only_the_damaged_records(directory: Path) -> None:
    folder = "__consumer_offsets-0"
    flip_header(directory, folder, 1, 70)
    assert ottla("log", "repair", str(directory), "--execute").status == 0
    assert committed(directory) == 1
    assert len(list((directory / folder).glob("*.damaged"))) == 1


def test_damaged_metadata_is_set_aside_and_the_topics_that_are_whole_are_served(directory: Path) -> None:
    path = directory / "__cluster_metadata-0" / LOG
    data = path.read_bytes()
    number = next(
        n for n, (p, h) in enumerate(iter_headers(data)) if b"__consumer_offsets" in data[p : p + h.size_bytes]
    )
    flip_header(directory, "__cluster_metadata-0", number, 70)
    with pytest.raises(ConfigError, match=r"ottla log repair .* --topic-partition __cluster_metadata-0 --execute"):
        Broker(directory).start()
    assert ottla("log", "repair", str(directory), "--execute").status == 0
    assert read(directory) == expected()
    assert (directory / "__consumer_offsets-0" / LOG).exists()
    assert not list(directory.glob("*-stray"))


def test_a_damaged_identity_is_rewritten(directory: Path) -> None:
    path = directory / "t-0" / "partition.metadata"
    text = path.read_text()
    path.write_text("version: 0\ntopic_id: AAAA\n")
    assert ottla("log", "repair", str(directory), "--execute").status == 0
    assert path.read_text() == text
    assert (directory / "t-0" / "partition.metadata.damaged").read_text() == "version: 0\ntopic_id: AAAA\n"
    assert read(directory) == expected()


def test_a_missing_folder_may_be_recreated_on_request(directory: Path) -> None:
    shutil.rmtree(directory / "t-0")
    shown = ottla("log", "repair", str(directory), "--topic-partition", "t-0", "--execute")
    assert "t-0 is gone" in shown.out
    assert read(directory) == {0: b"new"}


def test_a_directory_in_use_is_not_repaired(directory: Path) -> None:
    with Broker(directory):
        refused = ottla("log", "repair", str(directory), "--execute")
    assert refused.status == 1
    assert "is in use by process" in refused.err
