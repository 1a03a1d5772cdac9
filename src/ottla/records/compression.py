"""The five codecs of a record batch.

 Compressed data is readable by Java: snappy in xerial framing, lz4 frames of independent blocks. Data to decompress may
be malicious: nothing uses more memory than `limit_bytes`, and any error is a `CorruptRecordError`.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import Any

from ottla.errors import CorruptRecordError
from ottla.model import Buffer

DEFAULT_LIMIT_BYTES = 256 * 1024 * 1024
"""The default limit of a decompressed batch; producers create batches of 1 MiB and less."""
XERIAL_HEADER = b"\x82SNAPPY\x00" + (1).to_bytes(4, "big") * 2
XERIAL_BLOCK_BYTES = 32 * 1024
LEVELS = {"gzip": 6, "lz4": 1, "zstd": 3}
ZSTD_MAGIC = 0xFD2FB528
ZSTD_BLOCK_BYTES = 128 * 1024


class Codec(IntEnum):
    """The compression codec of a batch: the lowest three bits of its attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


def import_cramjam() -> Any:
    """Return the library, imported with the first compressed batch, since it needs 1.6 MB."""
    import cramjam as library

    return library


def compress(codec: Codec, data: Buffer, level: int | None = None) -> bytes:
    """Return `data` compressed; snappy has no levels and ignores `level`."""
    match codec:
        case Codec.NONE:
            return bytes(data)
        case Codec.GZIP:
            return bytes(import_cramjam().gzip.compress(data, level=LEVELS["gzip"] if level is None else level))
        case Codec.SNAPPY:
            return compress_xerial(data)
        case Codec.LZ4:
            return compress_lz4(data, LEVELS["lz4"] if level is None else level)
        case Codec.ZSTD:
            return bytes(import_cramjam().zstd.compress(data, level=LEVELS["zstd"] if level is None else level))


def decompress(codec: Codec, data: Buffer, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> Buffer:
    """Return `data` decompressed, at most `limit_bytes`; a view of `data` itself if it is not compressed."""
    if codec is Codec.NONE:
        return memoryview(data)
    try:
        if codec is Codec.SNAPPY:
            return decompress_snappy(memoryview(data), limit_bytes)
        library = getattr(import_cramjam(), codec.name.lower())
        if BOUNDS[codec](memoryview(data)) <= limit_bytes:
            return memoryview(library.decompress(data))
        return decompress_within(library, data, limit_bytes)
    except import_cramjam().DecompressionError as error:
        raise CorruptRecordError(f"a batch of {len(data)} bytes is not {codec.name.lower()}: {error}") from None


def compress_lz4(data: Buffer, level: int) -> bytes:
    """Return a frame of independent blocks, since Java's reader rejects linked ones."""
    compressor = import_cramjam().lz4.Compressor(level=level, content_checksum=False, block_linked=False)
    compressor.compress(bytes(data))
    return bytes(compressor.finish())


def compress_xerial(data: Buffer) -> bytes:
    """Return snappy blocks with their lengths, after the header of Java's snappy streams."""
    view = memoryview(data)
    parts = [XERIAL_HEADER]
    for start in range(0, len(view), XERIAL_BLOCK_BYTES):
        block = bytes(import_cramjam().snappy.compress_raw(view[start : start + XERIAL_BLOCK_BYTES]))
        parts += (len(block).to_bytes(4, "big"), block)
    return b"".join(parts)


def decompress_snappy(data: memoryview, limit_bytes: int) -> Buffer:
    """Decompress Java's or librdkafka's stream framing, or one raw block."""
    if data[:8] != XERIAL_HEADER[:8]:
        return decompress_block(data, limit_bytes)
    blocks = bytearray()
    position = len(XERIAL_HEADER)
    while position < len(data):
        start = position + 4
        position = start + int.from_bytes(data[position:start], "big")
        if not start < position <= len(data):
            raise CorruptRecordError(f"a snappy block ends at byte {position}, its batch has {len(data)}")
        blocks += decompress_block(data[start:position], limit_bytes, len(blocks))
    return blocks


def decompress_block(data: memoryview, limit_bytes: int, already: int = 0) -> memoryview:
    """Decompress one raw snappy block, which contains its decompressed length."""
    size = import_cramjam().snappy.decompress_raw_len(data) if len(data) else 0
    if already + size > limit_bytes:
        raise too_large(limit_bytes)
    return memoryview(import_cramjam().snappy.decompress_raw(data))


def gzip_bound(data: memoryview) -> int:
    """Return the maximum size: deflate makes at most 258 bytes of two bits."""
    return len(data) * 1032


def lz4_bound(data: memoryview) -> int:
    """Return the maximum size: one length byte makes at most 255 bytes."""
    return len(data) * 255


def zstd_bound(data: memoryview) -> int:
    """Return the maximum size of decompressed `data`, from the block headers of its frames (RFC 8878, 3.1.1).

    Zstandard can make 128 KiB of four bytes, so that the compressed size alone gives no useful limit.
    """
    bound = position = 0
    while position < len(data):
        magic = int.from_bytes(data[position : position + 4], "little")
        if magic & 0xFFFFFFF0 == 0x184D2A50:
            position += 8 + int.from_bytes(data[position + 4 : position + 8], "little")
            continue
        if magic != ZSTD_MAGIC or position + 5 > len(data):
            raise CorruptRecordError(f"a batch of {len(data)} bytes is not zstd: no frame at byte {position}")
        descriptor = data[position + 4]
        position += 5 + zstd_header_bytes(descriptor)
        last = False
        while not last:
            block = int.from_bytes(data[position : position + 3], "little")
            last, kind, size = bool(block & 1), block >> 1 & 3, block >> 3
            bound += size if kind < 2 else ZSTD_BLOCK_BYTES
            position += 3 + (1 if kind == 1 else size)
            if position > len(data):
                raise CorruptRecordError(f"a zstd block ends at byte {position}, its batch has {len(data)}")
        position += 4 * (descriptor >> 2 & 1)
    return bound


def zstd_header_bytes(descriptor: int) -> int:
    """Return the number of bytes between a frame's descriptor and its first block: window, dictionary id, content size."""
    single = descriptor >> 5 & 1
    size = descriptor >> 6
    return (1 - single) + (0, 1, 2, 4)[descriptor & 3] + (single if size == 0 else 1 << size)


def decompress_within(library: Any, data: Buffer, limit_bytes: int) -> memoryview:
    """Decompress untrusted data into a buffer that grows up to the limit."""
    size = min(limit_bytes, max(1024 * 1024, len(data) * 4))
    while True:
        room = bytearray(size)
        try:
            return memoryview(room)[: library.decompress_into(data, room)]
        except import_cramjam().DecompressionError as error:
            if "whole buffer" not in str(error):
                raise
        if size == limit_bytes:
            raise too_large(limit_bytes)
        size = min(limit_bytes, size * 4)


class DecompressedTooLargeError(CorruptRecordError):
    """A batch that exceeds the reader's limit."""


def too_large(limit_bytes: int) -> DecompressedTooLargeError:
    return DecompressedTooLargeError(
        f"a compressed batch holds more than the {limit_bytes} bytes that one batch may hold"
    )


BOUNDS: dict[Codec, Callable[[memoryview], int]] = {
    Codec.GZIP: gzip_bound,
    Codec.LZ4: lz4_bound,
    Codec.ZSTD: zstd_bound,
}
"""The maximum decompressed size, by codec."""
