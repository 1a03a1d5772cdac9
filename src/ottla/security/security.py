"""Evaluate the security settings: trust, certificates, login.

Pure, except that `tls_contexts` reads certificate files. Errors do not contain secrets.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from msgspec import Struct

from ottla.config import Password
from ottla.errors import ConfigError, NotYetError
from ottla.protocol.sasl.jaas import options_for
from ottla.security.kerberos_login import kerberos_login
from ottla.security.security_config import SecurityConfig

if TYPE_CHECKING:  # imported only with TLS
    from ottla.network.key_store import KeyStore, TrustStore
    from ottla.network.tls_context import TlsContexts, TlsSettings

WITH_TLS = ("SSL", "SASL_SSL")
WITH_LOGIN = ("SASL_PLAINTEXT", "SASL_SSL")
PASSWORDS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
MECHANISMS = (*PASSWORDS, "OAUTHBEARER", "GSSAPI")
OTHERS = {
    "AWS_MSK_IAM": (
        "Python's clients log in to MSK with IAM by OAUTHBEARER: set sasl.mechanism=OAUTHBEARER, and "
        "sasl.oauth.token.provider to a function that returns MSKAuthTokenProvider.generate_auth_token(region)"
    ),
}
"""Mechanisms of other clients, with the error message for each."""
NEUTRAL = ("security_protocol", "ssl_protocol", "ssl_enabled_protocols", "ssl_endpoint_identification_algorithm")
"""Settings that do not imply that security is wanted."""


class PasswordLogin(Struct, frozen=True):
    """A login by PLAIN or SCRAM."""

    username: str
    password: Password
    token: bool = False
    """True if they are the id and HMAC of a delegation token."""


class ClientCredentials(Struct, frozen=True):
    """The parameters of a request to a token endpoint."""

    url: str
    client_id: str
    client_secret: Password
    scope: str | None
    header_urlencode: bool = False


def check_security(config: SecurityConfig, given: Collection[str]) -> None:
    """Raise ConfigError or NotYetError if settings contradict each other; `given` has the fields that are set."""
    protocol = config.security_protocol
    if "security_protocol" not in given:
        wishes = sorted(name for name in given if name.startswith(("ssl_", "sasl_")) and name not in NEUTRAL)
        if wishes:
            likely = "SASL_SSL" if any(name.startswith("sasl_") for name in wishes) else "SSL"
            raise ConfigError(
                f"{wishes[0].replace('_', '.')} is set, and security.protocol is not, so that nothing would be secured; "
                f"add security.protocol={likely}"
            )
    if protocol in WITH_TLS:
        tls_settings(config)
    if protocol in WITH_LOGIN:
        check_handler(config)
        check_mechanism(config)
        if config.sasl_mechanism == "OAUTHBEARER":
            check_token_source(config)
        elif config.sasl_mechanism == "GSSAPI":
            kerberos_login(config)
        else:
            password_login(config)


def check_handler(config: SecurityConfig) -> None:
    """Reject login callback handlers except Kafka's own for OAUTHBEARER, the behaviour of which is built in."""
    named = config.sasl_login_callback_handler_class
    if named is not None and named.rpartition(".")[2] != "OAuthBearerLoginCallbackHandler":
        raise NotYetError(
            "sasl.login.callback.handler.class is not supported yet: no class is loaded from a setting; give "
            "sasl.oauth.token.provider a function that returns a token"
        )


def check_mechanism(config: SecurityConfig) -> None:
    """Raise ConfigError or NotYetError if the mechanism is not supported."""
    mechanism = config.sasl_mechanism
    if mechanism is None:
        raise ConfigError(
            f"sasl.mechanism is required with security.protocol={config.security_protocol}: {', '.join(MECHANISMS)}, "
            "which is Kerberos and Kafka's default"
        )
    if mechanism in OTHERS:
        raise NotYetError(f"sasl.mechanism = {mechanism}: {OTHERS[mechanism]}")
    if mechanism not in MECHANISMS:
        raise ConfigError(f"sasl.mechanism = {mechanism!r}: must be one of {', '.join(MECHANISMS)}")


def jaas_options(config: SecurityConfig) -> Mapping[str, str]:
    """Return the options of the JAAS line; empty without one."""
    assert config.sasl_mechanism is not None
    line = config.sasl_jaas_config
    return {} if line is None else options_for(config.sasl_mechanism, line.value)


def password_login(config: SecurityConfig) -> PasswordLogin:
    """Return user name and password, from the settings or from the JAAS line."""
    said = jaas_options(config)
    if said and (config.sasl_username is not None or config.sasl_password is not None):
        raise ConfigError(
            "sasl.jaas.config and sasl.username or sasl.password exclude each other: give only one of them"
        )
    username = config.sasl_username if config.sasl_jaas_config is None else said.get("username")
    given = said.get("password")
    password = config.sasl_password if config.sasl_jaas_config is None else None if given is None else Password(given)
    if not username or password is None:
        what = "sasl.jaas.config" if said else f"sasl.mechanism={config.sasl_mechanism}"
        missing = "username" if not username else "password"
        raise ConfigError(f"{what} needs a {missing}; set " + (f'{missing}="…" in it' if said else f"sasl.{missing}"))
    return PasswordLogin(username, password, said.get("tokenauth", "").lower() == "true")


def client_credentials(config: SecurityConfig) -> ClientCredentials | None:
    """Return the parameters for the token endpoint; None without one."""
    url = config.sasl_oauthbearer_token_endpoint_url
    if url is None:
        return None
    if url.startswith("file:"):
        raise ConfigError(
            "sasl.oauthbearer.token.endpoint.url must be https://…; for a file with a token set sasl.oauthbearer.token.file"
        )
    if not url.lower().startswith("https://"):
        raise ConfigError(
            "sasl.oauthbearer.token.endpoint.url must start with https://: otherwise the secret could be read on the network"
        )
    said = jaas_options(config)
    client_id = config.sasl_oauthbearer_client_credentials_client_id or said.get("clientId")
    secret = config.sasl_oauthbearer_client_credentials_client_secret
    if secret is None and "clientSecret" in said:
        secret = Password(said["clientSecret"])
    if not client_id or secret is None:
        missing = "id" if not client_id else "secret"
        raise ConfigError(
            f"sasl.oauthbearer.token.endpoint.url needs a client's {missing}: set "
            f"sasl.oauthbearer.client.credentials.client.{missing}"
        )
    scope = config.sasl_oauthbearer_scope or said.get("scope")
    return ClientCredentials(url, client_id, secret, scope, config.sasl_oauthbearer_header_urlencode)


def check_token_source(config: SecurityConfig) -> None:
    """Raise ConfigError unless exactly one source of tokens is set."""
    sources = {
        "sasl.oauth.token.provider": config.sasl_oauth_token_provider,
        "sasl.oauthbearer.token.file": config.sasl_oauthbearer_token_file,
        "sasl.oauthbearer.token.endpoint.url": client_credentials(config),
    }
    chosen = [name for name, source in sources.items() if source is not None]
    if len(chosen) != 1:
        message = (
            " and ".join(chosen) + " exclude each other; give one" if chosen else f"needs one of {', '.join(sources)}"
        )
        raise ConfigError(message if chosen else f"sasl.mechanism=OAUTHBEARER {message}")
    provider = config.sasl_oauth_token_provider
    if provider is not None and not callable(provider) and not callable(getattr(provider, "token", None)):
        raise ConfigError(
            "sasl.oauth.token.provider: must be a function without arguments, or an object with a method token()"
        )
    extensions_of(config)


def extensions_of(config: SecurityConfig) -> dict[str, str]:
    """Return the SASL extensions that are sent with a token."""
    from ottla.protocol.sasl.conversation import SaslError
    from ottla.protocol.sasl.oauthbearer import check_extension

    said = jaas_options(config)
    found = {name.removeprefix("extension_"): value for name, value in said.items() if name.startswith("extension_")}
    for pair in (config.sasl_oauthbearer_extensions or "").split(","):
        if pair.strip():
            name, _, value = pair.strip().partition("=")
            found[name] = value
    for name, value in found.items():
        try:
            check_extension(name, value)
        except SaslError as error:
            raise ConfigError(f"sasl.oauthbearer.extensions: {error}") from None
    return found


def tls_settings(config: SecurityConfig) -> TlsSettings:
    """Return the TLS settings; reads no file."""
    from ottla.network.tls_context import TlsSettings

    return TlsSettings(
        trust=trust_store(config),
        own=key_store(config),
        check_name=config.ssl_endpoint_identification_algorithm == "https",
        versions=config.ssl_enabled_protocols or ("TLSv1.2", "TLSv1.3"),
        cipher_suites=config.ssl_cipher_suites,
    )


def trust_store(config: SecurityConfig) -> TrustStore | None:
    """Return the trusted authorities; None: those of the operating system."""
    location, text = config.ssl_truststore_location, config.ssl_truststore_certificates
    kind, password = config.ssl_truststore_type, config.ssl_truststore_password
    if location is None and text is None and kind is None and password is None:
        return None
    from ottla.network.key_store import TrustStore

    return TrustStore(location=location, certificates=text, kind=kind, password=password)


def key_store(config: SecurityConfig) -> KeyStore | None:
    """Return the own certificate; None without one."""
    ways = {
        ("ssl_keystore_location",): (config.ssl_keystore_location,),
        ("ssl_keystore_certificate_chain", "ssl_keystore_key"): (
            config.ssl_keystore_certificate_chain,
            config.ssl_keystore_key,
        ),
        ("ssl_certificate_location", "ssl_key_location"): (config.ssl_certificate_location, config.ssl_key_location),
    }
    given = {names: values for names, values in ways.items() if any(value is not None for value in values)}
    if len(given) > 1:
        message = " and ".join(names[0].replace("_", ".") for names in given)
        raise ConfigError(f"{message} exclude each other; give one")
    for names, values in given.items():
        if None in values:
            message = " and ".join(name.replace("_", ".") for name in names)
            raise ConfigError(f"{message} belong together; give both")
    if not given:
        return None
    from ottla.network.key_store import KeyStore

    return KeyStore(
        location=config.ssl_keystore_location,
        chain_location=config.ssl_certificate_location,
        key_location=config.ssl_key_location,
        chain=config.ssl_keystore_certificate_chain,
        key=config.ssl_keystore_key,
        kind=config.ssl_keystore_type,
        store_password=config.ssl_keystore_password,
        key_password=config.ssl_key_password,
    )


def tls_contexts(config: SecurityConfig) -> TlsContexts | None:
    """Return the contexts of encrypted connections, or None for plaintext; raise ConfigError if a file is invalid."""
    if config.security_protocol not in WITH_TLS:
        return None
    from ottla.network.tls_context import TlsContexts

    return TlsContexts(tls_settings(config))
