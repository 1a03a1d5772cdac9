"""The principal and service of a Kerberos login, from the settings or a JAAS line. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from ottla.errors import ConfigError, OttlaError
from ottla.protocol.sasl.jaas import options_for
from ottla.security.security_config import SecurityConfig

SERVICE = "kafka"
"""The default first part of the brokers' principals."""


class KerberosError(OttlaError):
    """No ticket is available; the message has the reason and a remedy."""


class NoKdcError(KerberosError):
    """No ticket could be requested: no KDC answers, or clocks differ. This may be temporary."""


class KerberosLogin(Struct, frozen=True):
    """A login by a keytab, or by the tickets of kinit."""

    service: str = SERVICE
    principal: str | None = None
    """None: the first of the keytab, or that of the tickets."""
    keytab: str | None = None
    cache: str | None = None
    """The ticket cache; None: the system's default (`KRB5CCNAME`)."""


def kerberos_login(config: SecurityConfig) -> KerberosLogin:
    """Return the login; raise ConfigError if settings and JAAS line contradict each other."""
    line = config.sasl_jaas_config
    said = {} if line is None else options_for("GSSAPI", line.value)
    login = KerberosLogin(
        service=setting_or_option("sasl.kerberos.service.name", config.sasl_kerberos_service_name, said, "serviceName")
        or SERVICE,
        principal=setting_or_option("sasl.kerberos.principal", config.sasl_kerberos_principal, said, "principal"),
        keytab=setting_or_option("sasl.kerberos.keytab", config.sasl_kerberos_keytab, keytab_options(said), "keyTab"),
        cache=said.get("ticketCache"),
    )
    for name in ("sasl_username", "sasl_password"):
        if getattr(config, name) is not None:
            raise ConfigError(
                f"{name.replace('_', '.')} cannot be used with sasl.mechanism=GSSAPI, which needs no password: set a keytab "
                "with sasl.kerberos.keytab, or run kinit first"
            )
    check_login(login, said)
    return login


def setting_or_option(setting: str, value: str | None, said: Mapping[str, str], option: str) -> str | None:
    """Return a setting, or the JAAS option with the same meaning."""
    if value and said.get(option) and value != said[option]:
        raise ConfigError(f"{setting} and {option} in sasl.jaas.config have different values: give only one of them")
    return value or said.get(option) or None


def keytab_options(said: Mapping[str, str]) -> Mapping[str, str]:
    """Return the options of a keytab, which apply only with useKeyTab."""
    return said if is_true(said, "useKeyTab") else {}


def check_login(login: KerberosLogin, said: Mapping[str, str]) -> None:
    """Raise ConfigError if there are no credentials or the service name is invalid."""
    wants_keys = is_true(said, "useKeyTab")
    if said and not wants_keys and not is_true(said, "useTicketCache"):
        raise ConfigError(
            "sasl.jaas.config must say useKeyTab=true, with keyTab and principal, or useTicketCache=true: "
            "passwords are not supported"
        )
    if wants_keys and login.keytab is None:
        raise ConfigError('sasl.jaas.config has useKeyTab=true without a file: set keyTab="…" in it')
    if "/" in login.service or "@" in login.service:
        raise ConfigError(
            f"sasl.kerberos.service.name = {login.service!r}: must be the first part of the broker's principal alone, "
            f"{login.service.partition('/')[0].partition('@')[0] or SERVICE!r}"
        )


def is_true(said: Mapping[str, str], option: str) -> bool:
    return said.get(option, "").lower() in ("true", "yes")
