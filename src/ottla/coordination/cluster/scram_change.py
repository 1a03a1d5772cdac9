"""AlterUserScramCredentials: validate changes of SCRAM credentials, and return the records (KIP-554). Pure.

The client sends the salted password, never the password itself. The record has the keys derived from it, with which a
login can be verified but not made. The changes of one user are applied all or none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from ottla.coordination.cluster.events import ScramChangeRequested
from ottla.coordination.cluster.records import RemoveUserScramCredentialRecord, UserScramCredentialRecord
from ottla.coordination.cluster.topic_request import Refusal
from ottla.coordination.machine import Decision, Reply
from ottla.errors import ErrorCode
from ottla.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsResult,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from ottla.protocol.sasl.scram_credential import (
    LEAST_ITERATIONS,
    MECHANISMS,
    MOST_ITERATIONS,
    credential_of_salted,
)
from ottla.protocol.schema import Message

Known = Mapping[tuple[str, int], UserScramCredentialRecord]


def decide(known: Known, event: ScramChangeRequested) -> Decision[Message]:
    """Return the records of the valid changes. The reply has one result per user."""
    changes: list[ScramCredentialDeletion | ScramCredentialUpsertion] = [*event.deletions, *event.upsertions]
    named = Counter((each.name, each.mechanism) for each in changes)
    refusals: dict[str, Refusal] = {}
    records: dict[str, list[Message]] = {each.name: [] for each in changes}
    for change in changes:
        try:
            if named[change.name, change.mechanism] > 1:
                raise Refusal(
                    ErrorCode.DUPLICATE_RESOURCE, "a password is named more than once: name each once in a request"
                )
            records[change.name].append(build_record(known, change))
        except Refusal as refusal:
            refusals.setdefault(change.name, refusal)
    results = [build_result(name, refusals.get(name)) for name in records]
    kept = [record for name, each in records.items() if name not in refusals for record in each]
    return Decision(tuple(kept), (Reply(event.ticket, results),))


def build_record(known: Known, change: ScramCredentialDeletion | ScramCredentialUpsertion) -> Message:
    """Return the record of one change. Raise Refusal if it is invalid."""
    if not change.name:
        raise Refusal(ErrorCode.UNACCEPTABLE_CREDENTIAL, "the name of the user is empty")
    mechanism = MECHANISMS.get(change.mechanism)
    if mechanism is None:
        raise Refusal(
            ErrorCode.UNSUPPORTED_SASL_MECHANISM, f"mechanism {change.mechanism} is neither SCRAM-SHA-256 nor -512"
        )
    if isinstance(change, ScramCredentialDeletion):
        if (change.name, change.mechanism) not in known:
            raise Refusal(ErrorCode.RESOURCE_NOT_FOUND, f"{change.name!r} has no password for {mechanism}")
        return RemoveUserScramCredentialRecord(change.name, change.mechanism)
    check_change(change)
    made = credential_of_salted(mechanism, change.salted_password, change.salt, change.iterations)
    return UserScramCredentialRecord(
        change.name, change.mechanism, change.salt, made.stored_key, made.server_key, change.iterations
    )


def check_change(change: ScramCredentialUpsertion) -> None:
    """Raise Refusal for too few or too many iterations, or an empty salt or salted password."""
    if change.iterations < LEAST_ITERATIONS:
        raise Refusal(
            ErrorCode.UNACCEPTABLE_CREDENTIAL, f"{change.iterations} iterations: at least {LEAST_ITERATIONS} are taken"
        )
    if change.iterations > MOST_ITERATIONS:
        raise Refusal(
            ErrorCode.UNACCEPTABLE_CREDENTIAL, f"{change.iterations} iterations: at most {MOST_ITERATIONS} are taken"
        )
    if not (change.salt and change.salted_password):  # of any length, as in Kafka, even if no login can match it
        raise Refusal(ErrorCode.UNACCEPTABLE_CREDENTIAL, "the salt or the salted password is empty")


def build_result(name: str, refusal: Refusal | None) -> AlterUserScramCredentialsResult:
    """Return the result for one user."""
    if refusal is None:
        return AlterUserScramCredentialsResult(name)
    return AlterUserScramCredentialsResult(name, refusal.code, str(refusal))
