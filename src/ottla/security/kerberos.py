"""Kerberos tickets and security contexts by the library `gssapi`, with explanations of its errors.

Requesting a ticket waits for the KDC, so `begin_login` and `renew` are called only by dedicated threads.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

from ottla.errors import ConfigError, OttlaError
from ottla.extras import extra
from ottla.protocol.sasl.conversation import SaslError
from ottla.protocol.sasl.gssapi import GssapiConversation
from ottla.protocol.sentences import shown
from ottla.security.kerberos_login import KerberosError, KerberosLogin, NoKdcError

KRB5 = 2529638912
"""The first Kerberos error code (RFC 4120, 7.5.9) among the library's codes."""
ENDED = ("ExpiredContextError", "ExpiredCredentialsError")
EXPIRED = "the ticket has expired: run kinit, or set a keytab with sasl.kerberos.keytab"
PASSING = (33, 37, 156, 164)
"""Codes of errors that may be temporary."""
KINIT_SECONDS = 30.0
CACHES = count(1)


def load() -> Any:
    """Return the library; raise MissingExtraError without it, ConfigError if it finds no Kerberos on the machine."""
    with extra("kerberos"):
        try:
            import gssapi
        except ModuleNotFoundError:
            raise
        except (ImportError, OSError) as error:
            raise ConfigError(
                f"the package gssapi cannot be loaded ({shown(error)}): install the system's Kerberos, libgssapi-krb5-2 on Debian"
            ) from None
    return gssapi


class ClientContext:
    """The security context of one login at one broker."""

    def __init__(self, gssapi: Any, login: KerberosLogin, host: str, credentials: Any) -> None:
        flags = gssapi.RequirementFlag
        self._errors = gssapi.exceptions.GSSError
        self._login, self._host = login, host
        self._context = gssapi.SecurityContext(
            name=gssapi.Name(f"{login.service}@{host}", gssapi.NameType.hostbased_service),
            creds=credentials,
            usage="initiate",
            mech=gssapi.MechType.kerberos,
            flags=[
                flags.mutual_authentication,
                flags.replay_detection,
                flags.out_of_sequence_detection,
                flags.integrity,
            ],
        )
        self._context.__DEFER_STEP_ERRORS__ = False  # raise step errors at once
        self._mutual = flags.mutual_authentication

    @property
    def complete(self) -> bool:
        return bool(self._context.complete)

    def first_token(self) -> bytes:
        """Return the first token; requests a ticket of the KDC. Raises KerberosError."""
        with self._converted_errors(KerberosError):
            return bytes(self._context.step(None))

    def step(self, token: bytes) -> bytes | None:
        with self._converted_errors(SaslError):
            answer: bytes | None = self._context.step(token)
            if self._context.complete and not self._context.actual_flags & self._mutual:
                raise SaslError("the broker did not prove its identity")
        return answer

    def wrap(self, message: bytes) -> bytes:
        with self._converted_errors(SaslError):
            return bytes(self._context.wrap(message, False).message)

    def unwrap(self, message: bytes) -> bytes:
        with self._converted_errors(SaslError):
            return bytes(self._context.unwrap(message).message)

    @contextmanager
    def _converted_errors(self, kind: type[OttlaError]) -> Iterator[None]:
        try:
            yield
        except self._errors as error:
            if kind is KerberosError:
                raise no_ticket(error, self._login, self._host) from None
            raise kind(describe_error(error, self._login, self._host)) from None


class Tickets:
    """The tickets of one client."""

    def __init__(self, login: KerberosLogin) -> None:
        """Raise MissingExtraError or ConfigError if Kerberos is not available."""
        self._gssapi = load()
        self.login = login
        self._memory = f"MEMORY:ottla-{next(CACHES)}"
        """The cache for a keytab: the library requests a new ticket when half of the cached one's lifetime is over."""

    def begin_login(self, host: str) -> GssapiConversation:
        """Start a login at a broker; requests a ticket of the KDC. Raises KerberosError."""
        context = ClientContext(self._gssapi, self.login, host, self._credentials(host))
        return GssapiConversation(context, context.first_token())

    def lifetime(self) -> float | None:
        """Return the remaining lifetime of kinit's tickets in seconds; None with a keytab, which renews on demand."""
        if self.login.keytab is not None:
            return None
        try:
            return float(self._credentials("").lifetime)
        except (self._gssapi.exceptions.GSSError, KerberosError, TypeError):
            return None

    def renew(self) -> bool:
        """Renew kinit's tickets by the system's `kinit -R`; return false if that fails."""
        program = shutil.which("kinit")
        if program is None:
            return False
        place = ("-c", self.login.cache) if self.login.cache else ()
        try:
            done = subprocess.run(
                [program, "-R", *place],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=KINIT_SECONDS,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            return False
        return done.returncode == 0

    def _credentials(self, host: str) -> Any:
        login, gssapi = self.login, self._gssapi
        store: dict[str, str] | None = {"ccache": login.cache} if login.cache else None
        if login.keytab is not None:
            check_file(login.keytab)
            store = {"client_keytab": login.keytab, "ccache": self._memory}
        try:
            name = None
            if login.principal:
                name = gssapi.Name(login.principal, gssapi.NameType.kerberos_principal)
            return gssapi.Credentials(name=name, usage="initiate", mechs=[gssapi.MechType.kerberos], store=store)
        except gssapi.exceptions.GSSError as error:
            raise no_ticket(error, login, host) from None


def no_ticket(error: Any, login: KerberosLogin, host: str) -> KerberosError:
    """Return the error for a missing ticket, as NoKdcError if it may be temporary."""
    kind = NoKdcError if error.min_code - KRB5 in PASSING else KerberosError
    return kind(describe_error(error, login, host))


def check_file(place: str, setting: str = "sasl.kerberos.keytab") -> None:
    """Raise KerberosError for a missing or malformed keytab; the library would silently use other tickets."""
    try:
        with open(place.removeprefix("FILE:"), "rb") as file:
            version = file.read(1)
    except OSError as error:
        raise KerberosError(f"cannot read the keytab {place}: {error.strerror}; check {setting}") from None
    if version != b"\x05":
        raise KerberosError(f"{place} is not a keytab: check {setting}, or create one with ktutil")


def describe_error(error: Any, login: KerberosLogin, host: str) -> str:
    """Return the library's error with a remedy."""
    message = shown(error_reason(error))
    principal = login.principal or "this principal"
    service = f"{login.service}/{host}"
    if type(error).__name__ in ENDED:
        return EXPIRED
    match error.min_code - KRB5:
        case 141 | 195 if login.keytab is not None:
            return (
                f"{login.keytab} has no key of {principal}: check `klist -k {login.keytab}` and sasl.kerberos.principal"
            )
        case 141 | 195 | 212:
            return f"there is no ticket ({message}): run kinit, or set a keytab with sasl.kerberos.keytab"
        case 32 | 11:
            return EXPIRED
        case 7:
            return (
                f"the KDC does not know {service} ({message}): check sasl.kerberos.service.name, and the name by which the "
                "broker is known (bootstrap.servers, advertised.listeners)"
            )
        case 6:
            return f"the KDC does not know the principal ({message}): check sasl.kerberos.principal"
        case 24 | 31 | 14:
            return f"the KDC rejects the key of {principal} ({message}): create a new keytab, the key may have changed"
        case 33 | 37:
            return f"{message}: the clocks of this machine, the KDC and the broker differ by minutes: synchronize them with NTP"
        case 154 | 156 | 164 | 224:
            return f"{message}: check /etc/krb5.conf or the file of KRB5_CONFIG, and that the KDC runs"
    return f"{message}: check {service} and the principal with `kvno {service}`"


def error_reason(error: Any) -> str:
    """Return the library's error message, that of Kerberos if there is one."""
    codes = ((error.min_code, False),) if error.min_code else ((error.maj_code, True),)
    return "; ".join(error.get_all_statuses(*each)[0] for each in codes)
