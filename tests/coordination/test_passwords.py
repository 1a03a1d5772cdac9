"""Passwords and delegation tokens in the metadata of the cluster: decisions, records, and snapshots."""

from __future__ import annotations

import hashlib

from ottla.coordination.cluster.events import ScramChangeRequested, TokenCreationRequested, TokenDeletionRequested
from ottla.coordination.cluster.metadata import ClusterMetadata
from ottla.coordination.cluster.records import (
    DelegationTokenRecord,
    RemoveDelegationTokenRecord,
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
    decode_record,
    encode_record,
)
from ottla.coordination.controller import client_changes
from ottla.coordination.controller.config import ControllerConfig
from ottla.errors import ErrorCode
from ottla.protocol.messages.alter_user_scram_credentials import ScramCredentialDeletion, ScramCredentialUpsertion
from ottla.protocol.schema import Message

SALTED = hashlib.pbkdf2_hmac("sha256", b"pencil", b"salt", 4096)
ALICE = ScramCredentialUpsertion("alice", 1, 4096, b"salt", SALTED)
TOKEN = DelegationTokenRecord("User:alice", "User:alice", ["User:bob"], 1, 100, 50, "t1")


def request_changes(
    machine: ClusterMetadata, *changes: ScramCredentialUpsertion | ScramCredentialDeletion
) -> list[int]:
    """Return the error codes of a request, and replay its encoded records."""
    deletions = [each for each in changes if isinstance(each, ScramCredentialDeletion)]
    upsertions = [each for each in changes if isinstance(each, ScramCredentialUpsertion)]
    decision = client_changes.decide(machine, ScramChangeRequested(7, deletions, upsertions), ControllerConfig("c"))
    replay(machine, decision.records)
    return [result.error_code for result in decision.replies[0].message]


def replay(machine: ClusterMetadata, records: tuple[Message, ...]) -> None:
    for record in records:
        read = decode_record(encode_record(record))
        assert read == record
        machine.replay(read)


def test_a_password_is_set_and_deleted() -> None:
    machine = ClusterMetadata()
    assert request_changes(machine, ALICE) == [0]
    kept = machine.scram_credentials["alice", 1]
    assert (kept.salt, kept.iterations) == (b"salt", 4096)
    assert SALTED not in encode_record(kept)
    assert kept.stored_key == hashlib.sha256(_client_key()).digest()
    assert request_changes(machine, ScramCredentialDeletion("alice", 1)) == [0]
    assert machine.scram_credentials == {}


def _client_key() -> bytes:
    import hmac

    return hmac.digest(SALTED, b"Client Key", "sha256")


def test_a_salted_password_may_have_any_length_but_none_as_with_kafka() -> None:
    machine = ClusterMetadata()
    assert request_changes(machine, ScramCredentialUpsertion("alice", 2, 4096, b"salt", b"salted-password")) == [0]
    assert request_changes(machine, ScramCredentialUpsertion("bob", 2, 4096, b"salt", b"")) == [
        ErrorCode.UNACCEPTABLE_CREDENTIAL
    ]


def test_the_changes_of_one_user_are_atomic() -> None:
    machine = ClusterMetadata()
    weak = ScramCredentialUpsertion("alice", 2, 1, b"salt", bytes(64))
    bob = ScramCredentialUpsertion("bob", 1, 4096, b"salt", SALTED)
    assert request_changes(machine, ALICE, weak, bob) == [ErrorCode.UNACCEPTABLE_CREDENTIAL, 0]
    assert list(machine.scram_credentials) == [("bob", 1)]


def test_an_entry_named_twice_is_not_changed() -> None:
    machine = ClusterMetadata()
    assert request_changes(machine, ALICE) == [0]
    assert request_changes(machine, ALICE, ScramCredentialDeletion("alice", 1)) == [ErrorCode.DUPLICATE_RESOURCE]
    assert list(machine.scram_credentials) == [("alice", 1)]


def test_removing_an_unknown_password_or_token_is_silent() -> None:
    machine = ClusterMetadata()
    replay(machine, (RemoveUserScramCredentialRecord("nobody", 1), RemoveDelegationTokenRecord("none")))
    assert (machine.scram_credentials, machine.tokens) == ({}, {})


def test_a_token_exists_until_it_is_removed() -> None:
    machine = ClusterMetadata()
    replay(machine, client_changes.decide(machine, TokenCreationRequested(1, TOKEN), ControllerConfig("c")).records)
    assert machine.tokens == {"t1": TOKEN}
    gone = client_changes.decide(machine, TokenDeletionRequested(2, ("t1", "t2")), ControllerConfig("c"))
    assert gone.records == (RemoveDelegationTokenRecord("t1"),)
    replay(machine, gone.records)
    assert machine.tokens == {}


def test_a_snapshot_has_passwords_and_tokens() -> None:
    machine, again = ClusterMetadata(), ClusterMetadata()
    request_changes(machine, ALICE)
    replay(machine, (TOKEN,))
    replay(again, tuple(machine.records()))
    assert (again.scram_credentials, again.tokens) == (machine.scram_credentials, machine.tokens)
    assert "hidden" in repr(UserScramCredentialRecord("alice", 1))
