"""Who logs in by Kerberos, and where: what the settings say, or Java's line. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from ottla.errors import ConfigError, OttlaError
from ottla.protocol.sasl.jaas import options_for
from ottla.security.security_config import SecurityConfig

SERVICE = "kafka"
"""Whose ticket is asked for, unless somebody says otherwise: what nearly every broker is called."""


class KerberosError(OttlaError):
    """There is no ticket; the text says why, and what helps."""


class NoKdcError(KerberosError):
    """Nobody has been asked for one: no KDC answers, or clocks differ. That may pass by itself."""


class KerberosLogin(Struct, frozen=True):
    """By the keys of a file, or by the tickets of whoever has logged in on this machine."""

    service: str = SERVICE
    principal: str | None = None
    """None: the first of the file, or whose tickets there are."""
    keytab: str | None = None
    cache: str | None = None
    """Where tickets are, None: where the system has them (`KRB5CCNAME`)."""


def kerberos_login(config: SecurityConfig) -> KerberosLogin:
    """ConfigError where settings and line do not fit together."""
    line = config.sasl_jaas_config
    said = {} if line is None else options_for("GSSAPI", line.value)
    login = KerberosLogin(
        service=one_of("sasl.kerberos.service.name", config.sasl_kerberos_service_name, said, "serviceName") or SERVICE,
        principal=one_of("sasl.kerberos.principal", config.sasl_kerberos_principal, said, "principal"),
        keytab=one_of("sasl.kerberos.keytab", config.sasl_kerberos_keytab, keys_of(said), "keyTab"),
        cache=said.get("ticketCache"),
    )
    for name in ("sasl_username", "sasl_password"):
        if getattr(config, name) is not None:
            raise ConfigError(
                f"{name.replace('_', '.')} is not for sasl.mechanism=GSSAPI, which asks for no password: name a file of keys "
                "with sasl.kerberos.keytab, or run kinit first"
            )
    check_login(login, said)
    return login


def one_of(setting: str, value: str | None, said: Mapping[str, str], option: str) -> str | None:
    """A setting, or the option of the line that says the same."""
    if value and said.get(option) and value != said[option]:
        raise ConfigError(f"{setting} and {option} in sasl.jaas.config say different things; give one of them")
    return value or said.get(option) or None


def keys_of(said: Mapping[str, str]) -> Mapping[str, str]:
    """What the line says of keys, which counts only where it says so."""
    return said if is_true(said, "useKeyTab") else {}


def check_login(login: KerberosLogin, said: Mapping[str, str]) -> None:
    """ConfigError where there would be nothing to log in with, or at nobody."""
    wants_keys = is_true(said, "useKeyTab")
    if said and not wants_keys and not is_true(said, "useTicketCache"):
        raise ConfigError(
            "sasl.jaas.config must say useKeyTab=true, with keyTab and principal, or useTicketCache=true: "
            "nobody is asked for a password"
        )
    if wants_keys and login.keytab is None:
        raise ConfigError('sasl.jaas.config says useKeyTab=true and no file; set keyTab="…" in it')
    if "/" in login.service or "@" in login.service:
        raise ConfigError(
            f"sasl.kerberos.service.name = {login.service!r}: must be the first part of the broker's principal alone, "
            f"{login.service.partition('/')[0].partition('@')[0] or SERVICE!r}"
        )


def is_true(said: Mapping[str, str], option: str) -> bool:
    return said.get(option, "").lower() in ("true", "yes")
