"""The loops of compaction, compiled and plain, on the same bytes, whole and damaged."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ottla.storage.cleaning.key_map as compiled_map
import ottla.storage.cleaning.record_filter as compiled_filter
from ottla.errors import CorruptRecordError
from ottla.records.batch import HEADER_BYTES
from ottla.storage.cleaning.key_map import ENTRY_BYTES
from tests.plain import is_compiled, plain
from tests.records.test_damage import mutated
from tests.storage.compacting import SEED, keyed

FORMS = {
    "compiled": (compiled_map, compiled_filter),
    "plain": (plain("ottla.storage.cleaning.key_map"), plain("ottla.storage.cleaning.record_filter")),
}
forms = pytest.mark.parametrize("form", FORMS)
ROOM = 16
SIPHASH = {
    0: "A3817F04BA25A8E66DF67214C7550293",
    1: "DA87C1D86B99AF44347659119B22FC45",
    2: "8177228DA4A45DC7FCA38BDEF60AFFE4",
    7: "A1F1EBBED8DBC153C0B84AA61FF08239",
    8: "3B62A9BA6258F5610F83E264F31497B4",
    9: "264499060AD9BAABC47F8B02BB6D71ED",
    15: "5493E99933B0A8117E08EC0F97CFC3D9",
    63: "5150D1772F50834A503E069A973FBD7C",
}
"""SipHash-2-4 of 128 bits by OpenSSL, of the bytes 0, 1, 2, … so many of them, under the key 0, 1, …, 15."""
KEYS = st.one_of(st.none(), st.binary(max_size=20), st.sampled_from([b"a", b"b"]))
PAIRS = st.lists(st.tuples(KEYS, st.one_of(st.none(), st.binary(max_size=20))), min_size=1, max_size=12)


def records_of(pairs: Sequence[tuple[bytes | None, bytes | None]]) -> bytes:
    return keyed(pairs)[HEADER_BYTES:]


def outcome(form: str, batches: Sequence[tuple[int, int, bytes]], *, room: int, drop: bool) -> list[Any]:
    """The result of adding the keys of some batches and filtering them; the text of an error."""
    maps, filters = FORMS[form]
    keys, reported = maps.KeyMap(room * ENTRY_BYTES, SEED), []
    for base, count, records in batches:
        try:
            reported.append(keys.add_keys(records, count, base, batches[0][0]))
        except CorruptRecordError as error:
            reported.append(str(error))
    reported += [keys.size, keys.end_offset]
    keys.end_offset = 2**60
    found = filters.RecordFilter(keys)
    for base, count, records in batches:
        try:
            reported.append((found.run(records, count, base, drop), found.tombstones, found.latest))
            reported.append(bytes(found.buffer[: found.size]))
        except CorruptRecordError as error:
            reported.append(str(error))
    return reported


def same(batches: Sequence[tuple[int, int, bytes]], *, room: int = ROOM, drop: bool = False) -> list[Any]:
    """Assert that both forms agree, and return their result."""
    first, second = (outcome(form, batches, room=room, drop=drop) for form in FORMS)
    assert first == second
    return first


@pytest.mark.skipif(not is_compiled(compiled_map), reason="there is no compiled form here")
@pytest.mark.parametrize("size", SIPHASH)
def test_the_compiled_hash_is_siphash(size: int) -> None:
    # The reference takes the words of its key and of its answer from the low byte up.
    keys = compiled_map.KeyMap(4 * ENTRY_BYTES, SEED[7::-1] + SEED[:7:-1])
    keys.add_keys(records_of([(bytes(range(size)), b"")]), 1, 0, 0)
    entries = [keys.memory[at : at + ENTRY_BYTES] for at in range(0, 4 * ENTRY_BYTES, ENTRY_BYTES)]
    (entry,) = [entry for entry in entries if any(entry)]
    assert entry == bytes.fromhex(SIPHASH[size]) + (1).to_bytes(8, "little")


@forms
def test_another_seed_makes_other_hashes(form: str) -> None:
    def hashed(seed: bytes) -> bytes:
        keys = FORMS[form][0].KeyMap(4 * ENTRY_BYTES, seed)
        keys.add_keys(records_of([(b"key", b"")]), 1, 0, 0)
        return bytes(keys.memory[:])

    flipped = [bytes(octet ^ (number == at) for number, octet in enumerate(SEED)) for at in range(16)]
    assert len({hashed(seed) for seed in (SEED, *flipped)}) == 17


@given(batches=st.lists(PAIRS, min_size=1, max_size=4), room=st.integers(4, 40), drop=st.booleans())
def test_both_forms_keep_the_same_records(
    batches: list[list[tuple[bytes | None, bytes | None]]], room: int, drop: bool
) -> None:
    same([(20 * n, len(pairs), records_of(pairs)) for n, pairs in enumerate(batches)], room=room, drop=drop)


@given(seed=st.integers(0, 2**32), drop=st.booleans(), count=st.integers(0, 9))
def test_both_forms_report_the_same_errors_for_damaged_records(seed: int, drop: bool, count: int) -> None:
    good = records_of([(b"a", b"1"), (b"b", None), (None, b"2"), (b"a", b"3" * 100), (b"", b"")])
    same([(7, 5, good), (2**33, count, mutated(good, random.Random(seed)))], drop=drop)


def varint(value: int) -> bytes:
    rest = (value << 1) ^ (value >> 63)
    out = bytearray()
    while rest >= 0x80:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes(out) + bytes([rest])


def record(
    offset_delta: int = 0, key_size: int = 1, value_size: int = 1, time_delta: int = 0, key: bytes = b"k"
) -> bytes:
    body = b"\0" + varint(time_delta) + varint(offset_delta) + varint(key_size) + key + varint(value_size) + b"v\0"
    return varint(len(body)) + body


@pytest.mark.parametrize("delta", [-1, 1 << 31, (1 << 63) - 1, -(1 << 63)])
def test_an_offset_that_no_batch_reaches_is_refused(delta: int) -> None:
    reported = same([(1 << 40, 1, record(offset_delta=delta))])
    assert reported[0] == reported[-1] == f"record 0 of the batch at offset {1 << 40} does not fit its bytes"


@pytest.mark.parametrize("size", [-2, 5, 1 << 31, (1 << 63) - 1, -(1 << 63)])
def test_sizes_that_no_record_has_are_refused(size: int) -> None:
    assert same([(0, 1, record(key_size=size))])[0] == "record 0 of the batch at offset 0 does not fit its bytes"
    assert same([(0, 1, record(value_size=size))])[-1] == "record 0 of the batch at offset 0 does not fit its bytes"


@given(
    deltas=st.lists(st.integers(-(1 << 63), (1 << 63) - 1), min_size=1, max_size=5),
    shift=st.one_of(st.integers(-(1 << 40), 1 << 40), st.integers(-(1 << 63), (1 << 63) - 1)),
)
def test_both_forms_move_times_alike(deltas: list[int], shift: int) -> None:
    records = b"".join(record(number, time_delta=delta) for number, delta in enumerate(deltas))
    found = [filters.shift_times(records, len(deltas), shift) for _, filters in FORMS.values()]
    assert found[0] == found[1]
    if found[0] is not None:
        assert found[0] == b"".join(record(n, time_delta=delta - shift) for n, delta in enumerate(deltas))


@forms
def test_a_full_table_returns_the_offset_where_it_was_full(form: str) -> None:
    keys = FORMS[form][0].KeyMap(8 * ENTRY_BYTES, SEED)
    pairs = [(b"%d" % (number % 9), b"") for number in range(20)]
    assert not keys.add_keys(records_of(pairs), 20, 100, 0)
    assert (keys.room, keys.size, keys.end_offset) == (6, 6, 106)
    keys.close()
    keys.close()


@forms
def test_the_last_offset_of_each_of_thousands_of_keys_is_stored(form: str) -> None:
    maps, filters = FORMS[form]
    keys, chance = maps.KeyMap(4000 * ENTRY_BYTES, SEED), random.Random(5)
    pairs = [(b"key-%d" % chance.randrange(3000), b"v") for _ in range(10_000)]
    last = {key: number for number, (key, _) in enumerate(pairs)}
    assert keys.add_keys(records_of(pairs), len(pairs), 0, 0)
    assert keys.size == len(last)
    keys.end_offset = len(pairs)
    found = filters.RecordFilter(keys)
    assert found.run(records_of(pairs), len(pairs), 0, False) == len(last)
    kept = sorted(last.values())
    assert len(kept) == found.kept
    assert found.latest == kept[-1]
