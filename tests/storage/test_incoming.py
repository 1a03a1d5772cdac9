"""The single pass over incoming batches, compared with several passes, and its compiled form with the plain one."""

from __future__ import annotations

import re
from itertools import takewhile
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.errors import CorruptRecordError, KafkaError
from ottla.records.batch import BatchHeader, iter_headers, parse_header, seal, stamp_all, verify_all
from ottla.records.builder import BatchBuilder
from ottla.records.compression import Codec, compress
from ottla.records.crc32c import crc32c
from ottla.storage.log_config import LogConfig
from ottla.storage.producers.producer_entry import Origin
from ottla.storage.validation import incoming as compiled
from ottla.storage.validation.incoming import Incoming
from ottla.storage.validation.record_check import check_format, check_settings
from tests.plain import is_compiled, plain
from tests.storage.batches import GZIP, NOW, batch
from tests.storage.producing import produced

FORMS: dict[str, ModuleType] = {"compiled": compiled, "plain": plain("ottla.storage.validation.incoming")}
SEEDS = [
    bytes(batch(b"a")),
    bytes(batch(b"a", b"bc", attributes=GZIP)),
    produced(7, 3, 2),
    produced(7, 0, 1, transactional=True),
    bytes(batch(b"first") + batch(b"second", timestamps=[NOW + 90])),
]
FIELDS = (0, 8, 12, 16, 17, 21, 23, 27, 35, 43, 51, 53, 57, 61, 62)
"""The start positions of the fields of a header."""
BEGINS = {
    Codec.NONE: re.compile(b""),
    Codec.GZIP: re.compile(rb"\x1f\x8b\x08.", re.S),
    Codec.SNAPPY: re.compile(b"....", re.S),
    Codec.LZ4: re.compile(rb"\x04\x22\x4d\x18"),
    Codec.ZSTD: re.compile(rb"\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18"),
}
"""The magic bytes of each codec."""
FACTS = ("offsets", "latest", "largest", "identified", "claims_time", "backwards", "size_bytes")


@pytest.fixture(params=FORMS)
def form(request: pytest.FixtureRequest) -> ModuleType:
    return FORMS[request.param]


def test_the_two_forms_are_two() -> None:
    assert not is_compiled(FORMS["plain"])


@st.composite
def arriving(draw: st.DrawFn) -> bytes:
    """Batches, some of them with wrong bytes in a header, or cut off; their CRC may be that of the wrong bytes."""
    data = bytearray(draw(st.sampled_from(SEEDS)))
    for _ in range(draw(st.integers(0, 2))):
        at = draw(st.sampled_from(FIELDS)) + draw(st.integers(0, 7))
        if at < len(data):
            data[at] = draw(st.sampled_from([0, 1, 2, 4, 5, 8, 0x20, 0x7F, 0x80, 0xFF]))
    if draw(st.booleans()):
        length = int.from_bytes(data[8:12], "big", signed=True)
        data[17:21] = crc32c(data[21 : max(12 + length, 21)]).to_bytes(4, "big")
    return bytes(data[: draw(st.sampled_from([len(data), len(data) - 1, 60, 61, 12]))])


def are_as_many(records: bytes, header: BatchHeader) -> bool:
    """True if the records of a batch can be as many as its header states."""
    if header.codec:
        return header.count * 7 <= len(records) * {1: 1032, 2: 22, 3: 255, 4: 32768}[header.codec]
    for _ in range(header.count):
        octets = list(takewhile(lambda octet: octet > 0x7F, records[:4]))
        prefix = len(octets) + 1
        length = sum((octet & 0x7F) << 7 * place for place, octet in enumerate(records[:prefix]))
        if (
            len(records) < prefix
            or records[prefix - 1] > 0x7F
            or length % 2
            or not 12 <= length <= 2 * (len(records) - prefix)
        ):
            return False
        records = records[prefix + length // 2 :]
    return not records


def check_by_passes(data: bytes, config: LogConfig, *, from_client: bool) -> str:
    """Return the error of the batches, or an empty text if they may be appended."""
    try:
        check_format(data)
        position = 0
        for header in verify_all(data, from_client=from_client):
            check_settings(header, config)
            records = data[position + 61 : position + header.size_bytes]
            if from_client and not BEGINS[header.codec].match(records):
                return f"KafkaError INVALID_RECORD: the records of the batch cannot be read: they are not {header.codec.name.lower()}, as it says"
            if from_client and not are_as_many(records, header):
                return f"KafkaError INVALID_RECORD: the records of the batch cannot be read: it says that it has {header.count}, and has more or fewer"
            position += header.size_bytes
    except (CorruptRecordError, KafkaError) as error:
        return f"{type(error).__name__} {error}"
    return ""


def check_with(form: ModuleType, data: bytes, config: LogConfig, origin: Origin) -> tuple[str, dict[str, Any]]:
    """Return the error of the batches, or their headers if there is none."""
    try:
        found = form.check_incoming(data, config, origin, NOW)
    except (CorruptRecordError, KafkaError) as error:
        return f"{type(error).__name__} {error}", {}
    return "", {name: getattr(found, name) for name in FACTS}


@given(arriving(), st.booleans(), st.sampled_from([LogConfig(), LogConfig(max_message_bytes=90)]))
def test_the_fast_scan_accepts_and_rejects_the_same_as_the_slow_one(
    data: bytes, from_client: bool, config: LogConfig
) -> None:
    wrong = check_by_passes(data, config, from_client=from_client)
    views = {name: form.Incoming(memoryview(bytearray(data))) for name, form in FORMS.items()}
    looked = {name: view.check_batches(from_client) for name, view in views.items()}
    assert looked["compiled"] == looked["plain"]
    assert looked["plain"] or wrong, "the walk refused what is good"
    if from_client:
        results = [check_with(form, data, config, Origin.CLIENT) for form in FORMS.values()]
        assert results[0] == results[1]
        # Records are also examined if their timestamps are far ahead, or decrease.
        looked_at = any(word in results[0][0] for word in ("imestamp", "the records of the batch cannot be read"))
        assert results[0][0] == wrong or (wrong == "" and looked_at)


def claiming(data: bytes, count: int) -> bytes:
    """A batch whose header states so many records."""
    header = parse_header(data)._replace(count=count, last_offset_delta=count - 1)
    return seal(header, memoryview(data)[61:])


@pytest.mark.parametrize("count", [1, 2, 4, 5, 2**31 - 1])
def test_a_batch_with_a_wrong_record_count_is_rejected(form: ModuleType, count: int) -> None:
    data = claiming(bytes(batch(b"a", b"b" * 200, b"")), count)
    with pytest.raises(
        KafkaError,
        match=f"INVALID_RECORD: the records of the batch cannot be read: it says that it has {count}, and has",
    ):
        form.check_incoming(data, LogConfig(), Origin.CLIENT, NOW)
    assert form.check_incoming(claiming(data, 3), LogConfig(), Origin.CLIENT, NOW).offsets == 3


def test_a_compressed_batch_is_not_opened_but_cannot_have_billions(form: ModuleType) -> None:
    data = bytes(batch(b"a", b"bc", attributes=GZIP))
    assert form.check_incoming(claiming(data, 3), LogConfig(), Origin.CLIENT, NOW).offsets == 3
    with pytest.raises(KafkaError, match="INVALID_RECORD"):
        form.check_incoming(claiming(data, 2**31 - 1), LogConfig(), Origin.CLIENT, NOW)


@pytest.mark.parametrize("codec", Codec)
def test_the_best_possible_compression_ratio_is_accepted(form: ModuleType, codec: Codec) -> None:
    builder = BatchBuilder(codec, max_bytes=1 << 22)
    for _ in range(100_000):
        assert builder.append(NOW, None, None)
    assert form.check_incoming(builder.build(), LogConfig(), Origin.CLIENT, NOW).offsets == 100_000


def test_the_fast_scan_returns_the_same_headers_and_timestamps(form: ModuleType) -> None:
    for seed in SEEDS:
        ours, theirs = bytearray(seed), bytearray(seed)
        incoming = form.check_incoming(ours, LogConfig(), Origin.CLIENT, NOW)
        assert incoming.headers() == [header for _, header in iter_headers(seed)]
        incoming.stamp(2**40, 7, None)
        expected = stamp_all(theirs, verify_all(theirs), 2**40, 7)
        assert ours == theirs
        assert incoming.headers() == expected


def test_the_brokers_clock_makes_the_time_of_all_records_and_the_crc_true(form: ModuleType) -> None:
    config = LogConfig(message_timestamp_type="LogAppendTime")
    data = bytearray(batch(b"a", b"b"))
    incoming = form.check_incoming(data, config, Origin.CLIENT, NOW)
    incoming.stamp(5, 0, NOW + 9)
    (header,) = verify_all(data, from_client=False)
    assert (header.base_offset, header.max_timestamp, incoming.latest) == (5, NOW + 9, NOW + 9)


def test_an_append_time_is_set_in_a_copy_of_a_read_only_batch(form: ModuleType) -> None:
    data = bytes(batch(b"a"))
    incoming: Incoming = form.check_incoming(data, LogConfig(), Origin.CLIENT, NOW)
    incoming.stamp(9, 1, None)
    assert data == bytes(batch(b"a"))
    assert incoming.headers()[0].base_offset == 9


def compressed_as(codec: Codec, records: bytes) -> bytes:
    """A batch of one record whose header states this codec, with these bytes as records."""
    return seal(parse_header(bytes(batch(b"a", attributes=int(codec)))), memoryview(records))


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.LZ4, Codec.ZSTD])
@pytest.mark.parametrize("cut", [None, 0, 3])
def test_records_compressed_with_another_codec_are_rejected(form: ModuleType, codec: Codec, cut: int | None) -> None:
    plain_records = bytes(batch(b"a"))[61:]
    with pytest.raises(
        KafkaError, match=f"INVALID_RECORD: the records of .*: they are not {codec.name.lower()}, as it"
    ):
        form.check_incoming(compressed_as(codec, plain_records[:cut]), LogConfig(), Origin.CLIENT, NOW)


@pytest.mark.parametrize("codec", Codec)
def test_records_compressed_with_the_batchs_codec_are_accepted(form: ModuleType, codec: Codec) -> None:
    records = compress(codec, bytes(batch(b"a"))[61:])
    assert form.check_incoming(compressed_as(codec, records), LogConfig(), Origin.CLIENT, NOW).offsets == 1


def test_skippable_zstd_frames_may_precede_the_data(form: ModuleType) -> None:
    records = b"\x5a\x2a\x4d\x18" + (2).to_bytes(4, "little") + b"ab" + compress(Codec.ZSTD, bytes(batch(b"a"))[61:])
    assert form.check_incoming(compressed_as(Codec.ZSTD, records), LogConfig(), Origin.CLIENT, NOW).offsets == 1
