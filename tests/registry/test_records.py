"""Keys, values and guids in the format of other registries."""

from __future__ import annotations

import msgspec

from ottla.registry import records
from ottla.registry.records import Content
from ottla.registry.state import RegistryState


def test_keys_have_the_bytes_that_other_registries_write() -> None:
    assert records.schema_key("s", 1) == b'{"keytype":"SCHEMA","subject":"s","version":1,"magic":1}'
    assert records.config_record(None, None).key == b'{"keytype":"CONFIG","subject":null,"magic":0}'
    assert records.mode_record("s", None).key == b'{"keytype":"MODE","subject":"s","magic":0}'
    assert records.noop_record().key == b'{"keytype":"NOOP","magic":0}'
    assert records.delete_subject_record("s", 2).key == b'{"keytype":"DELETE_SUBJECT","subject":"s","magic":0}'


def test_a_guid_is_the_one_that_confluents_registry_computes() -> None:
    text = '{"type":"record","name":"myrecord","fields":[{"type":"string","default":null,"name":"f"}]}'
    rules = {"domainRules": [{"kind": "TRANSFORM", "mode": "WRITEREAD"}]}

    assert list(Content("AVRO", text).digest()) == [
        each % 256 for each in (29, 32, -53, -71, -27, -29, 94, -105, 84, -25, -38, 23, 11, 110, 93, -37)
    ]
    assert list(Content("AVRO", text, (), {}, rules).digest()) == [
        each % 256 for each in (22, -15, -20, -91, -21, -7, 34, -77, -38, -128, 33, 47, -113, -89, 52, 46)
    ]


def test_the_records_of_a_topic_by_another_registry_are_replayed() -> None:
    state = RegistryState()
    lines: list[tuple[bytes, bytes | None]] = [
        (b'{"keytype":"NOOP","magic":0}', None),
        (
            b'{"keytype":"SCHEMA","subject":"s","version":1,"magic":1}',
            b'{"subject":"s","version":1,"id":5,"schema":"\\"int\\"","deleted":false}',
        ),
        (
            b'{"keytype":"SCHEMA","subject":"s","version":2,"magic":0}',
            b'{"subject":"s","version":2,"id":6,"schemaType":"JSON","references":[],"schema":"{}","deleted":false}',
        ),
        (b'{"keytype":"CONFIG","subject":null,"magic":0}', b'{"compatibilityLevel":"FULL"}'),
        (b'{"keytype":"DELETE_SUBJECT","subject":"s","magic":0}', b'{"subject":"s","version":1}'),
    ]
    for key, value in lines:
        assert state.replay(key, value) is None

    assert [(each.version, each.is_deleted) for each in state.versions("s", with_deleted=True)] == [
        (1, True),
        (2, False),
    ]
    assert state.highest_id(".") == 6
    assert state.config("s") == {"compatibilityLevel": "FULL"}
    assert state.replay(b'{"keytype":"CLEAR_SUBJECT","subject":"s","magic":0}', b'{"subject":"s"}') is None
    assert [each.version for each in state.versions("s", with_deleted=True)] == [2]


def test_a_record_that_cannot_be_read_is_skipped_with_a_reason() -> None:
    state = RegistryState()
    key = records.schema_key("s", 1)

    for value in (b"{", b"[]", b"{}", b'{"id":"x","schema":"1"}', b'{"id":1,"schema":5}', b"\xff"):
        assert state.replay(key, value)
    for value in (  # numbers and depths that no registry writes
        b'{"id":1,"schema":"1","references":[{"name":"a","subject":"b","version":1099511627776}]}',
        b'{"id":1099511627776,"schema":"1"}',
        b"[" * 100_000 + b"]" * 100_000,
    ):
        assert state.replay(key, value)
    for bad in (None, b"", b"{}", b"5", b'{"keytype":"OTHER"}', b'{"keytype":"SCHEMA"}'):
        assert state.replay(bad, b"{}")

    assert state.counts() == {"subjects": 0, "versions": 0, "schemas": 0}
    assert state.highest_id(".") == 0
    assert msgspec.json.decode(key)["subject"] == "s"
