"""Logins by Kerberos as a broker takes them: with the keys of its own principal, from a file that is read at each login.

`Acceptor.open` and what it opens read and write files (against replays, the library keeps what it has seen): they are for a thread.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from ottla.broker.authentication.local_names import local_name, read_local_rules
from ottla.errors import ConfigError
from ottla.protocol.sasl.conversation import SaslError
from ottla.protocol.sentences import shown
from ottla.security.kerberos import check_file, load, reason
from ottla.security.kerberos_login import KerberosError, is_true


class Acceptor:
    """What a listener needs to know who comes."""

    def __init__(self, setting: str, options: Mapping[str, str], rules: Sequence[str]) -> None:
        """`options` are those of the line that `setting` holds; ConfigError where nobody could log in by them."""
        self._gssapi = load()
        self._keytab = options.get("keyTab")
        principal = options.get("principal")
        self._principal = None if principal in (None, "", "*") else principal
        self._rules = read_local_rules(rules)
        if not self._keytab or not is_true(options, "useKeyTab"):
            raise ConfigError(f'{setting} must say useKeyTab=true and where the broker\'s keys are: keyTab="…"')
        try:
            check_file(self._keytab, "keyTab")
            self._credentials()
        except KerberosError as error:
            raise ConfigError(f"{setting}: {error}") from None
        except self._gssapi.exceptions.GSSError as error:
            raise ConfigError(
                f"{setting}: {reason(error)}; the broker needs the key of its own principal, such as "
                f"kafka/broker.example.org@REALM: look with `klist -k {self._keytab}`"
            ) from None
        self._realm = self._default_realm()

    def open(self) -> AcceptedContext:
        """For one login; SaslError where the file of keys is there no more."""
        with told(self._gssapi):
            return AcceptedContext(self._gssapi, self._credentials())

    def user_of(self, principal: str) -> str | None:
        """Who that is here; None where no rule fits."""
        return local_name(principal, self._rules, self._realm)

    def _credentials(self) -> Any:
        gssapi = self._gssapi
        name = None
        if self._principal is not None:
            name = gssapi.Name(self._principal, gssapi.NameType.kerberos_principal)
        mechs = [gssapi.MechType.kerberos]  # else it would negotiate by SPNEGO as well, which Kafka does not
        return gssapi.Credentials(name=name, usage="accept", mechs=mechs, store={"keytab": self._keytab})

    def _default_realm(self) -> str | None:
        gssapi = self._gssapi
        try:
            whole = gssapi.Name("somebody", gssapi.NameType.user).canonicalize(gssapi.MechType.kerberos)
        except gssapi.exceptions.GSSError:
            return None
        return str(whole).partition("@")[2] or None


class AcceptedContext:
    """A context seen from the broker."""

    def __init__(self, gssapi: Any, credentials: Any) -> None:
        self._gssapi = gssapi
        self._context = gssapi.SecurityContext(creds=credentials, usage="accept")
        self._context.__DEFER_STEP_ERRORS__ = False  # what is wrong is for the log, not for the client

    @property
    def complete(self) -> bool:
        return bool(self._context.complete)

    @property
    def principal(self) -> str:
        return str(self._context.initiator_name)

    def step(self, token: bytes) -> bytes | None:
        with told(self._gssapi):
            answer: bytes | None = self._context.step(token)
        return answer

    def wrap(self, message: bytes) -> bytes:
        with told(self._gssapi):
            return bytes(self._context.wrap(message, False).message)

    def unwrap(self, message: bytes) -> bytes:
        with told(self._gssapi):
            return bytes(self._context.unwrap(message).message)


@contextmanager
def told(gssapi: Any) -> Iterator[None]:
    """What the library has against the client, for the log."""
    try:
        yield
    except gssapi.exceptions.GSSError as error:
        raise SaslError(f"Kerberos says: {shown(reason(error))}") from None
