"""Describe, add, change and delete SCRAM users (KIP-554)."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable
from typing import Any

from ottla.client.admin.admin_api_driver import (
    AdminApiDriver,
    AdminQuery,
    lookup_any_broker,
    lookup_controller,
    raise_first,
)
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
    """Implements the SCRAM methods of `Admin`, which documents them."""

    def __init__(self, driver: AdminApiDriver) -> None:
        self._driver = driver

    def describe_user_scram_credentials(
        self, users: Iterable[str] | None, timeout: float | None
    ) -> dict[str, dict[str, int]]:
        requested = None if users is None else [UserName(each) for each in checked_texts("users", users, "alice")]
        request = DescribeUserScramCredentialsRequest(requested)
        query: AdminQuery[str, Any] = AdminQuery(lookup_any_broker, lambda _: request, read_response)
        found, failed = self._driver.run_query(query, [""], timeout)
        raise_first(failed)
        results = found[""].results
        raise_first({each.user: error for each in results if (error := user_error(each)) is not None})
        return {
            each.user: {NAMES.get(one.mechanism, str(one.mechanism)): one.iterations for one in each.credential_infos}
            for each in results
        }

    def alter_user_scram_credentials(self, alterations: Iterable[Alteration], timeout: float | None) -> None:
        wanted = checked_alterations(alterations)
        upsertions = [encode_upsertion(each) for each in wanted if isinstance(each, UserScramCredentialUpsertion)]
        deletions = [
            ScramCredentialDeletion(checked_text("user", each.user, "alice"), mechanism_number(each.mechanism))
            for each in wanted
            if isinstance(each, UserScramCredentialDeletion)
        ]

        def request(users: list[str]) -> AlterUserScramCredentialsRequest:
            return AlterUserScramCredentialsRequest(
                [each for each in deletions if each.name in users], [each for each in upsertions if each.name in users]
            )

        def read(_: list[str], message: Any) -> dict[str, KafkaError | bool]:
            return {each.user: user_error(each) or True for each in message.results}

        query: AdminQuery[str, bool] = AdminQuery(lookup_controller, request, read)
        raise_first(self._driver.run_query(query, [each.user for each in wanted], timeout)[1])


def checked_alterations(alterations: Iterable[Any]) -> list[Alteration]:
    if isinstance(alterations, Alteration):
        raise TypeError(f"{alterations!r} is not a list: write [{alterations!r}]")
    wanted = checked_list("alterations", alterations, EXAMPLE)
    for each in wanted:
        if not isinstance(each, Alteration):
            raise TypeError(f"{each!r} is not an alteration: write {EXAMPLE}, or UserScramCredentialDeletion('alice')")
    return wanted


def encode_upsertion(wanted: UserScramCredentialUpsertion) -> ScramCredentialUpsertion:
    """Return the salted hash in the form of the protocol. The password itself is not sent."""
    mechanism = mechanism_number(wanted.mechanism)
    password = wanted.password.encode() if isinstance(wanted.password, str) else wanted.password
    if not isinstance(password, bytes) or not password:
        raise ValueError(f"the password of {wanted.user!r} must be text or bytes, and not be empty")
    iterations = checked_whole("iterations", wanted.iterations, "how often to hash the password", 2**31 - 1, 1)
    salt = secrets.token_bytes(SALT_BYTES) if wanted.salt is None else wanted.salt
    if not isinstance(salt, bytes):
        raise TypeError(f"salt = {salt!r}: must be bytes, or None for a random salt")
    salted = hashlib.pbkdf2_hmac(DIGESTS[wanted.mechanism], password, salt, iterations)
    return ScramCredentialUpsertion(checked_text("user", wanted.user, "alice"), mechanism, iterations, salt, salted)


def mechanism_number(mechanism: str) -> int:
    if mechanism not in MECHANISMS:
        raise ValueError(unknown("mechanism", mechanism, MECHANISMS))
    return MECHANISMS[mechanism]


def read_response(_: list[str], message: Any) -> dict[str, Any]:
    if message.error_code:
        return {"": error_for(message.error_code, message.error_message or "the SCRAM users")}
    return {"": message}


def user_error(response: Any) -> KafkaError | None:
    """Return the error of one user, or None."""
    if not response.error_code:
        return None
    if response.error_code == ErrorCode.RESOURCE_NOT_FOUND:
        return error_for(response.error_code, f"user {response.user!r} has no SCRAM credentials")
    return error_for(response.error_code, response.error_message or f"user {response.user!r}")
