"""Passwords and delegation tokens in the cluster's metadata: what is decided, what the log says of it, and what a snapshot has."""

from __future__ import annotations

import hashlib

from ottla.coordination.cluster.events import ScramCredentialsRequested, TokenRequested, TokensUnwanted
from ottla.coordination.cluster.metadata import ClusterMetadata
from ottla.coordination.cluster.records import (
    DelegationTokenRecord,
    RemoveDelegationTokenRecord,
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
    decode_record,
    encode_record,
)
from ottla.errors import ErrorCode
from ottla.protocol.messages.alter_user_scram_credentials import ScramCredentialDeletion, ScramCredentialUpsertion
from ottla.protocol.schema import Message

SALTED = hashlib.pbkdf2_hmac("sha256", b"pencil", b"salt", 4096)
ALICE = ScramCredentialUpsertion("alice", 1, 4096, b"salt", SALTED)
TOKEN = DelegationTokenRecord("User:alice", "User:alice", ["User:bob"], 1, 100, 50, "t1")


def asked(machine: ClusterMetadata, *changes: ScramCredentialUpsertion | ScramCredentialDeletion) -> list[int]:
    """The error codes of a request, whose records are replayed from their bytes."""
    deletions = [each for each in changes if isinstance(each, ScramCredentialDeletion)]
    upsertions = [each for each in changes if isinstance(each, ScramCredentialUpsertion)]
    decision = machine.decide(ScramCredentialsRequested(7, deletions, upsertions), 0.0)
    replay(machine, decision.records)
    return [result.error_code for result in decision.replies[0].message]


def replay(machine: ClusterMetadata, records: tuple[Message, ...]) -> None:
    for record in records:
        read = decode_record(encode_record(record))
        assert read == record
        machine.replay(read)


def test_a_password_comes_and_goes() -> None:
    machine = ClusterMetadata()
    assert asked(machine, ALICE) == [0]
    kept = machine.passwords["alice", 1]
    assert (kept.salt, kept.iterations) == (b"salt", 4096)
    assert SALTED not in encode_record(kept)
    assert kept.stored_key == hashlib.sha256(_client_key()).digest()
    assert asked(machine, ScramCredentialDeletion("alice", 1)) == [0]
    assert machine.passwords == {}


def _client_key() -> bytes:
    import hmac

    return hmac.digest(SALTED, b"Client Key", "sha256")


def test_a_salted_password_may_have_any_length_but_none_as_with_kafka() -> None:
    machine = ClusterMetadata()
    assert asked(machine, ScramCredentialUpsertion("alice", 2, 4096, b"salt", b"salted-password")) == [0]
    assert asked(machine, ScramCredentialUpsertion("bob", 2, 4096, b"salt", b"")) == [ErrorCode.UNACCEPTABLE_CREDENTIAL]


def test_of_one_user_all_is_changed_or_nothing() -> None:
    machine = ClusterMetadata()
    weak = ScramCredentialUpsertion("alice", 2, 1, b"salt", bytes(64))
    bob = ScramCredentialUpsertion("bob", 1, 4096, b"salt", SALTED)
    assert asked(machine, ALICE, weak, bob) == [ErrorCode.UNACCEPTABLE_CREDENTIAL, 0]
    assert list(machine.passwords) == [("bob", 1)]


def test_what_is_named_twice_is_not_changed_at_all() -> None:
    machine = ClusterMetadata()
    assert asked(machine, ALICE) == [0]
    assert asked(machine, ALICE, ScramCredentialDeletion("alice", 1)) == [ErrorCode.DUPLICATE_RESOURCE]
    assert list(machine.passwords) == [("alice", 1)]


def test_what_nobody_knows_is_removed_in_silence() -> None:
    machine = ClusterMetadata()
    replay(machine, (RemoveUserScramCredentialRecord("nobody", 1), RemoveDelegationTokenRecord("none")))
    assert (machine.passwords, machine.tokens) == ({}, {})


def test_a_token_lives_until_it_is_unwanted() -> None:
    machine = ClusterMetadata()
    replay(machine, machine.decide(TokenRequested(1, TOKEN), 0.0).records)
    assert machine.tokens == {"t1": TOKEN}
    gone = machine.decide(TokensUnwanted(2, ("t1", "t2")), 0.0)
    assert gone.records == (RemoveDelegationTokenRecord("t1"),)
    replay(machine, gone.records)
    assert machine.tokens == {}


def test_a_snapshot_has_passwords_and_tokens() -> None:
    machine, again = ClusterMetadata(), ClusterMetadata()
    asked(machine, ALICE)
    replay(machine, (TOKEN,))
    replay(again, tuple(machine.records()))
    assert (again.passwords, again.tokens) == (machine.passwords, machine.tokens)
    assert "hidden" in repr(UserScramCredentialRecord("alice", 1))
