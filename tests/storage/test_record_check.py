"""The check of a batch's records, and recompression."""

from __future__ import annotations

import pytest

from ottla.records.batch import HEADER_BYTES, parse_header
from ottla.records.compression import Codec, compress
from ottla.storage.log_config import LogConfig
from ottla.storage.validation.record_check import level_of, recompress_batch
from tests.storage.batches import batch


@pytest.mark.parametrize(
    ("codec", "settings", "level"),
    [
        (Codec.GZIP, {}, None),
        (Codec.GZIP, {"compression_gzip_level": -1}, None),
        (Codec.GZIP, {"compression_gzip_level": 1}, 1),
        (Codec.GZIP, {"compression_gzip_level": 9}, 9),
        (Codec.LZ4, {"compression_lz4_level": 3}, 3),
        (Codec.ZSTD, {"compression_zstd_level": 7}, 7),
        (Codec.ZSTD, {"compression_zstd_level": -1}, -1),
        (Codec.SNAPPY, {"compression_gzip_level": 9}, None),
        (Codec.NONE, {"compression_gzip_level": 9}, None),
    ],
)
def test_each_codec_has_the_level_of_the_topic_and_gzip_may_keep_its_own(
    codec: Codec, settings: dict[str, int], level: int | None
) -> None:
    assert level_of(codec, LogConfig(**settings)) == level  # type: ignore[arg-type]


@pytest.mark.parametrize("level", [1, 9])
def test_a_batch_is_recompressed_at_the_level_of_the_topic(level: int) -> None:
    plain = memoryview(batch(*(b"value %d" % (number % 37) for number in range(500))))
    config = LogConfig(compression_type="gzip", compression_gzip_level=level)
    made = recompress_batch(plain, parse_header(plain), config)
    assert bytes(made[HEADER_BYTES:]) == bytes(compress(Codec.GZIP, plain[HEADER_BYTES:], level))


def test_a_batch_with_the_codec_of_the_topic_is_unchanged() -> None:
    plain = memoryview(batch(b"a"))
    assert recompress_batch(plain, parse_header(plain), LogConfig()) is plain
    assert recompress_batch(plain, parse_header(plain), LogConfig(compression_type="uncompressed")) is plain
