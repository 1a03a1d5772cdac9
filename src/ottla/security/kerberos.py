"""Tickets and contexts by the system's Kerberos, through the library `gssapi`; what it has to say in sentences.

Asking for a ticket waits for a KDC: only threads that are made for it call `begin` and `renew`.
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
"""Where the codes of Kerberos begin (RFC 4120, 7.5.9) among those that the library tells."""
ENDED = ("ExpiredContextError", "ExpiredCredentialsError")
EXPIRED = "the ticket has expired; run kinit, or name a file of keys with sasl.kerberos.keytab"
PASSING = (33, 37, 156, 164)
"""Codes of what may be otherwise in a minute, though nobody changes a setting here."""
KINIT_SECONDS = 30.0
CACHES = count(1)


def load() -> Any:
    """The library; MissingExtraError without it, ConfigError where it finds no Kerberos on the machine."""
    with extra("kerberos"):
        try:
            import gssapi
        except ModuleNotFoundError:
            raise
        except (ImportError, OSError) as error:
            raise ConfigError(
                f"the package gssapi cannot be loaded ({shown(error)}); install the system's Kerberos, libgssapi-krb5-2 on Debian"
            ) from None
    return gssapi


class ClientContext:
    """One conversation's with one broker."""

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
        self._context.__DEFER_STEP_ERRORS__ = False  # what is wrong is told at once, and to us
        self._mutual = flags.mutual_authentication

    @property
    def complete(self) -> bool:
        return bool(self._context.complete)

    def begin(self) -> bytes:
        """The first token; asks a KDC. KerberosError."""
        with self._told(KerberosError):
            return bytes(self._context.step(None))

    def step(self, token: bytes) -> bytes | None:
        with self._told(SaslError):
            answer: bytes | None = self._context.step(token)
            if self._context.complete and not self._context.actual_flags & self._mutual:
                raise SaslError("the broker did not prove who it is")
        return answer

    def wrap(self, message: bytes) -> bytes:
        with self._told(SaslError):
            return bytes(self._context.wrap(message, False).message)

    def unwrap(self, message: bytes) -> bytes:
        with self._told(SaslError):
            return bytes(self._context.unwrap(message).message)

    @contextmanager
    def _told(self, kind: type[OttlaError]) -> Iterator[None]:
        try:
            yield
        except self._errors as error:
            if kind is KerberosError:
                raise no_ticket(error, self._login, self._host) from None
            raise kind(sentence(error, self._login, self._host)) from None


class Tickets:
    """Those of one client."""

    def __init__(self, login: KerberosLogin) -> None:
        """MissingExtraError or ConfigError where there is no Kerberos here."""
        self._gssapi = load()
        self.login = login
        self._memory = f"MEMORY:ottla-{next(CACHES)}"
        """Of a file of keys: the library fetches a new ticket when the one in there has lived half its life."""

    def begin(self, host: str) -> GssapiConversation:
        """A login at a broker; asks a KDC. KerberosError says why there is none."""
        context = ClientContext(self._gssapi, self.login, host, self._credentials(host))
        return GssapiConversation(context, context.begin())

    def lifetime(self) -> float | None:
        """Seconds that tickets somebody else fetched are good for; None for our own, which are fetched as they are needed."""
        if self.login.keytab is not None:
            return None
        try:
            return float(self._credentials("").lifetime)
        except (self._gssapi.exceptions.GSSError, KerberosError, TypeError):
            return None

    def renew(self) -> bool:
        """Have the tickets somebody fetched last longer, as far as they may; by the system's own program."""
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
    """Why there is none, and whether that may pass."""
    kind = NoKdcError if error.min_code - KRB5 in PASSING else KerberosError
    return kind(sentence(error, login, host))


def check_file(place: str, setting: str = "sasl.kerberos.keytab") -> None:
    """KerberosError for a file of keys that is not there; the library would look for tickets instead."""
    try:
        with open(place.removeprefix("FILE:"), "rb") as file:
            version = file.read(1)
    except OSError as error:
        raise KerberosError(f"the file of keys {place} cannot be read: {error.strerror}; look at {setting}") from None
    if version != b"\x05":
        raise KerberosError(f"{place} is no file of keys; look at {setting}, or make one with ktutil")


def sentence(error: Any, login: KerberosLogin, host: str) -> str:
    """What the library says, and what helps."""
    told = shown(reason(error))
    who = login.principal or "this principal"
    service = f"{login.service}/{host}"
    if type(error).__name__ in ENDED:
        return EXPIRED
    match error.min_code - KRB5:
        case 141 | 195 if login.keytab is not None:
            return f"{login.keytab} has no key of {who}; look with `klist -k {login.keytab}`, and at sasl.kerberos.principal"
        case 141 | 195 | 212:
            return f"there is no ticket ({told}); run kinit, or name a file of keys with sasl.kerberos.keytab"
        case 32 | 11:
            return EXPIRED
        case 7:
            return (
                f"the KDC knows no {service} ({told}); look at sasl.kerberos.service.name, and at the name by which the "
                "broker is known (bootstrap.servers, advertised.listeners)"
            )
        case 6:
            return f"the KDC does not know who logs in ({told}); look at sasl.kerberos.principal"
        case 24 | 31 | 14:
            return f"the KDC does not take the key of {who} ({told}); fetch its keys anew, they may have been changed"
        case 33 | 37:
            return f"{told}: the clocks of this machine, the KDC and the broker differ by more than minutes; set them by NTP"
        case 154 | 156 | 164 | 224:
            return f"{told}; look at /etc/krb5.conf, or the file that KRB5_CONFIG names, and whether the KDC is up"
    return f"{told}; look at {service} and who logs in with `kvno {service}`"


def reason(error: Any) -> str:
    """What is wrong in the library's words: those of Kerberos where it has some."""
    codes = ((error.min_code, False),) if error.min_code else ((error.maj_code, True),)
    return "; ".join(error.get_all_statuses(*each)[0] for each in codes)
