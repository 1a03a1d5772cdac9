"""What to answer to a wish for other passwords, and the records that make it true (KIP-554). Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from ottla.coordination.cluster.events import ScramCredentialsRequested
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


def decide(known: Known, event: ScramCredentialsRequested) -> Decision[Message]:
    """The changes of each user that may be changed, all or none of one user's, and for each one answer."""
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
            records[change.name].append(record_of(known, change))
        except Refusal as refusal:
            refusals.setdefault(change.name, refusal)
    results = [result_of(name, refusals.get(name)) for name in records]
    kept = [record for name, each in records.items() if name not in refusals for record in each]
    return Decision(tuple(kept), (Reply(event.ticket, results),))


def record_of(known: Known, change: ScramCredentialDeletion | ScramCredentialUpsertion) -> Message:
    """What the log is to say of one change; Refusal where it may not be made."""
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
    check(change)
    made = credential_of_salted(mechanism, change.salted_password, change.salt, change.iterations)
    return UserScramCredentialRecord(
        change.name, change.mechanism, change.salt, made.stored_key, made.server_key, change.iterations
    )


def check(change: ScramCredentialUpsertion) -> None:
    """Refuse what would be too weak, too dear, or no password at all."""
    if change.iterations < LEAST_ITERATIONS:
        raise Refusal(
            ErrorCode.UNACCEPTABLE_CREDENTIAL, f"{change.iterations} iterations: at least {LEAST_ITERATIONS} are taken"
        )
    if change.iterations > MOST_ITERATIONS:
        raise Refusal(
            ErrorCode.UNACCEPTABLE_CREDENTIAL, f"{change.iterations} iterations: at most {MOST_ITERATIONS} are taken"
        )
    if not (change.salt and change.salted_password):  # of any length: Kafka takes what no login will ever give, too
        raise Refusal(ErrorCode.UNACCEPTABLE_CREDENTIAL, "the salt or the salted password is empty")


def result_of(name: str, refusal: Refusal | None) -> AlterUserScramCredentialsResult:
    """The answer for one user."""
    if refusal is None:
        return AlterUserScramCredentialsResult(name)
    return AlterUserScramCredentialsResult(name, refusal.code, str(refusal))
