from __future__ import annotations

import gzip
import os
import tracemalloc
from typing import Any

import cramjam
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.errors import CorruptRecordError
from ottla.records.compression import Codec, compress, decompress, zstd_bound

MIB = 1024 * 1024
TEXT = b"".join(b"flight %d from EWR to IAH is late by %d minutes\n" % (i, i * 7919 % 180) for i in range(4000))
NOISE = os.urandom(100_000)
ODD = [b"", b"x", TEXT, NOISE, bytes(3 * MIB)]
COMPRESSING = [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD]
codecs = pytest.mark.parametrize("codec", COMPRESSING, ids=lambda codec: codec.name)


def arrow(codec: Codec) -> pa.Codec:
    name: Any = codec.name.lower()
    return pa.Codec(name)


def xerial(*blocks: bytes) -> bytes:
    framed = b"".join(len(block).to_bytes(4, "big") + block for block in blocks)
    return b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01" + framed


@codecs
@pytest.mark.parametrize("data", ODD, ids=["empty", "one byte", "text", "noise", "zeros"])
def test_compressed_data_is_decompressed_unchanged(codec: Codec, data: bytes) -> None:
    assert bytes(decompress(codec, compress(codec, data))) == data


@given(data=st.binary(max_size=2000), codec=st.sampled_from(list(Codec)))
def test_any_bytes_are_restored(codec: Codec, data: bytes) -> None:
    assert bytes(decompress(codec, memoryview(compress(codec, memoryview(data))))) == data


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.LZ4, Codec.ZSTD], ids=lambda codec: codec.name)
@pytest.mark.parametrize("data", [TEXT, NOISE], ids=["text", "noise"])
def test_arrows_codecs_read_what_is_written_and_are_read(codec: Codec, data: bytes) -> None:
    assert arrow(codec).decompress(compress(codec, data), len(data), asbytes=True) == data
    assert bytes(decompress(codec, arrow(codec).compress(data, asbytes=True))) == data


def test_the_level_counts() -> None:
    assert len(compress(Codec.GZIP, TEXT, 9)) < len(compress(Codec.GZIP, TEXT, 1))
    assert len(compress(Codec.ZSTD, TEXT, 19)) < len(compress(Codec.ZSTD, TEXT, 1))
    assert len(compress(Codec.LZ4, TEXT, 9)) < len(compress(Codec.LZ4, TEXT, 1))


def test_lz4_frames_have_independent_blocks_which_is_all_that_java_reads() -> None:
    flags = compress(Codec.LZ4, TEXT)[4]
    assert flags >> 6 == 1
    assert flags & 0x20


def test_snappy_is_written_in_the_framing_of_java() -> None:
    framed = compress(Codec.SNAPPY, TEXT)
    assert framed[:16] == xerial()
    first = int.from_bytes(framed[16:20], "big")
    assert arrow(Codec.SNAPPY).decompress(framed[20 : 20 + first], 32 * 1024, asbytes=True) == TEXT[: 32 * 1024]


def test_a_bare_snappy_block_is_read_too() -> None:
    assert bytes(decompress(Codec.SNAPPY, arrow(Codec.SNAPPY).compress(TEXT, asbytes=True))) == TEXT


def test_snappy_blocks_written_by_hand_are_read() -> None:
    literal, repeat = b"\x05\x10ottla", b"\x08\x00a\x1a\x01\x00"  # "ottla"; "a" and seven more of it
    assert bytes(decompress(Codec.SNAPPY, literal)) == b"ottla"
    assert bytes(decompress(Codec.SNAPPY, xerial(literal, repeat, b"\x00"))) == b"ottlaaaaaaaaa"
    assert bytes(decompress(Codec.SNAPPY, xerial())) == b""


@codecs
def test_a_decompression_bomb_is_rejected_before_it_takes_memory(codec: Codec) -> None:
    bomb = compress(codec, bytes(64 * MIB))
    tracemalloc.start()
    try:
        with pytest.raises(CorruptRecordError, match="more than the 2097152 bytes"):
            decompress(codec, bomb, limit_bytes=2 * MIB)
        assert tracemalloc.get_traced_memory()[1] < 5 * MIB
    finally:
        tracemalloc.stop()


@codecs
def test_a_batch_of_just_the_limit_is_read(codec: Codec) -> None:
    assert len(decompress(codec, compress(codec, bytes(3 * MIB)), limit_bytes=3 * MIB)) == 3 * MIB


@pytest.mark.parametrize("size", [0, 1, 1000, 131072, 131073, 5 * MIB])
@pytest.mark.parametrize("level", [1, 19])
def test_the_bound_of_zstd_holds_and_is_not_far_off(size: int, level: int) -> None:
    for data in (bytes(size), os.urandom(size), (TEXT * 30)[:size]):
        bound = zstd_bound(memoryview(compress(Codec.ZSTD, data, level)))
        assert len(data) <= bound <= 8 * len(data) + 131072


def test_frames_one_after_the_other_are_read() -> None:
    for codec in (Codec.GZIP, Codec.LZ4, Codec.ZSTD):
        assert bytes(decompress(codec, compress(codec, b"one ") + compress(codec, b"two"))) == b"one two"
    skippable = b"\x50\x2a\x4d\x18\x03\x00\x00\x00abc"
    assert bytes(decompress(Codec.ZSTD, skippable + compress(Codec.ZSTD, b"two"))) == b"two"
    assert bytes(decompress(Codec.GZIP, gzip.compress(TEXT))) == TEXT


@codecs
@given(data=st.data())
def test_damaged_bytes_are_an_error_or_other_bytes_but_never_anything_else(codec: Codec, data: st.DataObject) -> None:
    good = compress(codec, TEXT[:5000])
    bad = bytearray(good)
    for _ in range(data.draw(st.integers(1, 4))):
        bad[data.draw(st.integers(0, len(bad) - 1))] = data.draw(st.integers(0, 255))
    bad = bad[: data.draw(st.integers(0, len(bad)))]
    try:
        assert len(decompress(codec, bad, limit_bytes=MIB)) <= MIB
    except CorruptRecordError:
        pass


@codecs
@given(junk=st.binary(max_size=100))
def test_junk_is_an_error_or_bytes_but_never_anything_else(codec: Codec, junk: bytes) -> None:
    try:
        decompress(codec, junk, limit_bytes=MIB)
    except CorruptRecordError:
        pass


def test_an_error_names_the_codec() -> None:
    with pytest.raises(CorruptRecordError, match="a batch of 4 bytes is not gzip"):
        decompress(Codec.GZIP, b"junk")


def test_a_false_snappy_length_allocates_no_memory() -> None:
    with pytest.raises(CorruptRecordError, match="more than the 1048576 bytes"):
        decompress(Codec.SNAPPY, b"\xff\xff\xff\xff\x0fabc", limit_bytes=MIB)
    with pytest.raises(CorruptRecordError, match="a snappy block ends at byte 2147483667"):
        decompress(Codec.SNAPPY, xerial() + b"\x7f\xff\xff\xff")
    with pytest.raises(cramjam.DecompressionError):
        cramjam.snappy.decompress_raw(b"\xff")
