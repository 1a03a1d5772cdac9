"""Users who log in by SCRAM: described, added, given another password, taken away (KIP-554)."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable
from typing import Any

from ottla.client.admin.admin_api_driver import AdminApiDriver, Question, any_broker, controller, raise_first
from ottla.client.admin.scram import MECHANISMS, UserScramCredentialDeletion, UserScramCredentialUpsertion
from ottla.client.interface.arguments import checked_list, checked_text, checked_texts, checked_whole
from ottla.config import unknown
from ottla.errors import ErrorCode, KafkaError, error_for
from ottla.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from ottla.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    UserName,
)
from ottla.protocol.sasl.scram import DIGESTS

NAMES = {number: name for name, number in MECHANISMS.items()}
SALT_BYTES = 24
EXAMPLE = "[UserScramCredentialUpsertion('alice', 's3cret')]"
Alteration = UserScramCredentialUpsertion | UserScramCredentialDeletion


class ScramCalls:
    """What an admin does with users; `Admin` has the same names and says what they do."""

    def __init__(self, driver: AdminApiDriver) -> None:
        self._driver = driver

    def describe_user_scram_credentials(
        self, users: Iterable[str] | None, timeout: float | None
    ) -> dict[str, dict[str, int]]:
        asked = None if users is None else [UserName(each) for each in checked_texts("users", users, "alice")]
        request = DescribeUserScramCredentialsRequest(asked)
        question: Question[str, Any] = Question(any_broker, lambda _: request, read_answer)
        found, failed = self._driver.ask(question, [""], timeout)
        raise_first(failed)
        results = found[""].results
        raise_first({each.user: error for each in results if (error := error_of(each)) is not None})
        return {
            each.user: {NAMES.get(one.mechanism, str(one.mechanism)): one.iterations for one in each.credential_infos}
            for each in results
        }

    def alter_user_scram_credentials(self, alterations: Iterable[Alteration], timeout: float | None) -> None:
        wanted = checked_alterations(alterations)
        upsertions = [upsertion(each) for each in wanted if isinstance(each, UserScramCredentialUpsertion)]
        deletions = [
            ScramCredentialDeletion(checked_text("user", each.user, "alice"), number_of(each.mechanism))
            for each in wanted
            if isinstance(each, UserScramCredentialDeletion)
        ]

        def request(users: list[str]) -> AlterUserScramCredentialsRequest:
            return AlterUserScramCredentialsRequest(
                [each for each in deletions if each.name in users], [each for each in upsertions if each.name in users]
            )

        def read(_: list[str], message: Any) -> dict[str, KafkaError | bool]:
            return {each.user: error_of(each) or True for each in message.results}

        question: Question[str, bool] = Question(controller, request, read)
        raise_first(self._driver.ask(question, [each.user for each in wanted], timeout)[1])


def checked_alterations(alterations: Iterable[Any]) -> list[Alteration]:
    if isinstance(alterations, Alteration):
        raise TypeError(f"{alterations!r} is no list: write [{alterations!r}]")
    wanted = checked_list("alterations", alterations, EXAMPLE)
    for each in wanted:
        if not isinstance(each, Alteration):
            raise TypeError(f"{each!r} is no alteration: write {EXAMPLE}, or UserScramCredentialDeletion('alice')")
    return wanted


def upsertion(wanted: UserScramCredentialUpsertion) -> ScramCredentialUpsertion:
    """The password hashed, as it travels and is kept; itself it stays here."""
    mechanism = number_of(wanted.mechanism)
    password = wanted.password.encode() if isinstance(wanted.password, str) else wanted.password
    if not isinstance(password, bytes) or not password:
        raise ValueError(f"the password of {wanted.user!r} must be text or bytes, and not be empty")
    iterations = checked_whole("iterations", wanted.iterations, "how often to hash the password", 2**31 - 1, 1)
    salt = secrets.token_bytes(SALT_BYTES) if wanted.salt is None else wanted.salt
    if not isinstance(salt, bytes):
        raise TypeError(f"salt = {salt!r}: must be bytes, or None for some by chance")
    salted = hashlib.pbkdf2_hmac(DIGESTS[wanted.mechanism], password, salt, iterations)
    return ScramCredentialUpsertion(checked_text("user", wanted.user, "alice"), mechanism, iterations, salt, salted)


def number_of(mechanism: str) -> int:
    if mechanism not in MECHANISMS:
        raise ValueError(unknown("mechanism", mechanism, MECHANISMS))
    return MECHANISMS[mechanism]


def read_answer(_: list[str], message: Any) -> dict[str, Any]:
    if message.error_code:
        return {"": error_for(message.error_code, message.error_message or "the users of SCRAM")}
    return {"": message}


def error_of(answer: Any) -> KafkaError | None:
    """What is wrong with one user."""
    if not answer.error_code:
        return None
    if answer.error_code == ErrorCode.RESOURCE_NOT_FOUND:
        return error_for(answer.error_code, f"there is no user {answer.user!r} who logs in by SCRAM")
    return error_for(answer.error_code, answer.error_message or f"user {answer.user!r}")
