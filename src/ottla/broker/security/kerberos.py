"""Kerberos logins on the side of the broker, with the keys of its principal. The key file is read at each login.

`Acceptor.open` and its result read and write files (the library stores what it has seen, against replays), so they run in a thread.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from ottla.broker.security.kerberos_local_names import local_name, read_local_rules
from ottla.errors import ConfigError
from ottla.protocol.sasl.conversation import SaslError
from ottla.protocol.sentences import shown
from ottla.security.kerberos import check_file, error_reason, load
from ottla.security.kerberos_login import KerberosError, is_true


class Acceptor:
    """Accepts Kerberos logins on one listener."""

    def __init__(self, setting: str, options: Mapping[str, str], rules: Sequence[str]) -> None:
        """`options` are those of the JAAS line in `setting`. Raise ConfigError if no login could succeed with them."""
        self._gssapi = load()
        self._keytab = options.get("keyTab")
        principal = options.get("principal")
        self._principal = None if principal in (None, "", "*") else principal
        self._rules = read_local_rules(rules)
        if not self._keytab or not is_true(options, "useKeyTab"):
            raise ConfigError(f'{setting} must have useKeyTab=true and the file of the broker\'s keys, keyTab="…"')
        try:
            check_file(self._keytab, "keyTab")
            self._credentials()
        except KerberosError as error:
            raise ConfigError(f"{setting}: {error}") from None
        except self._gssapi.exceptions.GSSError as error:
            raise ConfigError(
                f"{setting}: {error_reason(error)}; the broker needs the key of its own principal, such as "
                f"kafka/broker.example.org@REALM: list the keys with `klist -k {self._keytab}`"
            ) from None
        self._realm = self._default_realm()

    def open(self) -> AcceptedContext:
        """Return the state of one login. Raise SaslError if the key file is missing."""
        with describe_gssapi_errors(self._gssapi):
            return AcceptedContext(self._gssapi, self._credentials())

    def find_user(self, principal: str) -> str | None:
        """Return the user name of a principal, None if no rule matches."""
        return local_name(principal, self._rules, self._realm)

    def _credentials(self) -> Any:
        gssapi = self._gssapi
        name = None
        if self._principal is not None:
            name = gssapi.Name(self._principal, gssapi.NameType.kerberos_principal)
        mechs = [gssapi.MechType.kerberos]  # otherwise it would negotiate by SPNEGO as well, unlike Kafka
        return gssapi.Credentials(name=name, usage="accept", mechs=mechs, store={"keytab": self._keytab})

    def _default_realm(self) -> str | None:
        gssapi = self._gssapi
        try:
            whole = gssapi.Name("somebody", gssapi.NameType.user).canonicalize(gssapi.MechType.kerberos)
        except gssapi.exceptions.GSSError:
            return None
        return str(whole).partition("@")[2] or None


class AcceptedContext:
    """The broker's side of a login."""

    def __init__(self, gssapi: Any, credentials: Any) -> None:
        self._gssapi = gssapi
        self._context = gssapi.SecurityContext(creds=credentials, usage="accept")
        self._context.__DEFER_STEP_ERRORS__ = False  # errors are for the log, not for the client

    @property
    def complete(self) -> bool:
        return bool(self._context.complete)

    @property
    def principal(self) -> str:
        return str(self._context.initiator_name)

    def step(self, token: bytes) -> bytes | None:
        with describe_gssapi_errors(self._gssapi):
            answer: bytes | None = self._context.step(token)
        return answer

    def wrap(self, message: bytes) -> bytes:
        with describe_gssapi_errors(self._gssapi):
            return bytes(self._context.wrap(message, False).message)

    def unwrap(self, message: bytes) -> bytes:
        with describe_gssapi_errors(self._gssapi):
            return bytes(self._context.unwrap(message).message)


@contextmanager
def describe_gssapi_errors(gssapi: Any) -> Iterator[None]:
    """Raise the library's error as SaslError, for the log."""
    try:
        yield
    except gssapi.exceptions.GSSError as error:
        raise SaslError(f"Kerberos failed: {shown(error_reason(error))}") from None
