"""The settings of a listener's security, under Kafka's names. Values only.

Each may be set for all listeners, `ssl.client.auth=required`, and for one,
`listener.name.internal.ssl.client.auth=none`; settings of SASL also for one mechanism,
`listener.name.internal.plain.sasl.jaas.config=…`.
"""

from __future__ import annotations

from typing import Annotated, Literal

from ottla.config import Between, Password
from ottla.model import INT32_MAX
from ottla.settings_class import settings

StoreType = Literal["PEM", "PKCS12", "JKS"]


@settings
class ListenerConfig:
    """TLS and SASL on the listeners of a broker or controller."""

    ssl_keystore_location: str | None = None
    """The broker's certificate, those that signed it, and its private key, in one file: PEM or PKCS12. Read again when the
    file changes."""

    ssl_keystore_certificate_chain: Password | None = None
    """Certificates as text, in PEM; with `ssl.keystore.key`."""

    ssl_keystore_key: Password | None = None
    """The private key as text, in PEM."""

    ssl_keystore_type: StoreType | None = None
    """The format of the file; None to detect it. Files that only Java can read (`JKS`) are rejected with the command
    that converts them.
    """

    ssl_keystore_password: Password | None = None
    """The password of a PKCS12 file with the key."""

    ssl_key_password: Password | None = None
    """The password of a private key in PEM that is encrypted."""

    ssl_truststore_location: str | None = None
    """The certificates of the authorities for clients' certificates, in a file: PEM or PKCS12. Read again when the file
    changes.
    """

    ssl_truststore_certificates: Password | None = None
    """The same as text, in PEM (KIP-651)."""

    ssl_truststore_type: StoreType | None = None
    """The format of the file; None to detect it."""

    ssl_truststore_password: Password | None = None
    """The password of a PKCS12 file of certificates."""

    ssl_client_auth: Literal["required", "requested", "none"] = "none"
    """The request for clients' certificates: `required`, `requested` (a client may have none) or `none`."""

    ssl_endpoint_identification_algorithm: Literal["https", "none", ""] = "https"
    """`https` if the certificate of another broker or a controller must match its host name. Empty or `none`: any name
    is accepted.
    """

    ssl_principal_mapping_rules: str = "DEFAULT"
    """The mapping of names in client certificates to users: rules `RULE:pattern/replacement/[LU]`, separated by commas,
    and `DEFAULT` for the unchanged name. The first matching rule is used.
    """

    ssl_enabled_protocols: tuple[Literal["TLSv1.2", "TLSv1.3"], ...] = ("TLSv1.2", "TLSv1.3")
    """The accepted versions of TLS. There are no older ones."""

    ssl_cipher_suites: tuple[str, ...] = ()
    """The suites of TLS 1.2 that may be used, by Java's names or OpenSSL's. Empty: OpenSSL's choice. Python cannot choose
    among those of TLS 1.3."""

    sasl_enabled_mechanisms: tuple[Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "GSSAPI"], ...] = (
        "SCRAM-SHA-256",
        "SCRAM-SHA-512",
    )
    """The mechanisms of client logins. Kafka's default is GSSAPI, which is Kerberos and needs the extra `kerberos` and
    a keytab.
    """

    sasl_jaas_config: Password | None = None
    """A JAAS line for one listener and mechanism: users of PLAIN, `….PlainLoginModule required user_alice="…";`, or for
    GSSAPI the broker's keys, `….Krb5LoginModule required useKeyTab=true keyTab="…" principal="kafka/…";`. Users with
    a SCRAM password can authenticate by PLAIN as well, if PLAIN is enabled, without being in such a line.
    """

    sasl_kerberos_principal_to_local_rules: tuple[str, ...] = ("DEFAULT",)
    """How a principal of Kerberos becomes a user: rules `RULE:[n:form](pattern)s/pattern/replacement/` with g, L or U behind,
    commas between, and `DEFAULT` for the first part of those of the machine's own realm. The first that fits counts."""

    sasl_kerberos_min_time_before_relogin: Annotated[int, Between(0)] = 60_000
    """The time after which Kafka reads its keys again, in ms. Accepted without effect: this broker reads its keys at
    each login.
    """

    sasl_kerberos_service_name: str | None = None
    """The first component of the principals of other brokers for GSSAPI; `kafka` by default."""

    sasl_server_max_receive_size: Annotated[int, Between(512, INT32_MAX)] = 524_288
    """Largest request of a connection that has not logged in; one that announces more is closed, and one that
    announces more than 32 KiB in any case."""

    connections_max_reauth_ms: Annotated[int, Between(0)] = 0
    """Time after which a connection has to log in again, or is closed (KIP-368); 0 is never. It is earlier where a token
    ends before."""

    sasl_oauthbearer_jwks_endpoint_url: str | None = None
    """The URL of the keys that may sign tokens, `https://…` only."""

    sasl_oauthbearer_jwks_file: str | None = None
    """The same keys in a JSON file. It is read again when it changes."""

    sasl_oauthbearer_jwks_endpoint_refresh_ms: Annotated[int, Between(1000)] = 3_600_000
    """The interval at which the endpoint is read again. It is also read for an unknown key, every ten seconds at most."""

    sasl_oauthbearer_expected_audience: tuple[str, ...] = ()
    """The accepted audiences of a token. Required with OAUTHBEARER: a token for another service must not be accepted."""

    sasl_oauthbearer_allow_unverified_audience: bool = False
    """Accept tokens for any audience, or without one. It is insecure: tokens for other services are accepted, too."""

    sasl_oauthbearer_expected_issuer: str | None = None
    """The required issuer of a token. Required with `sasl.oauthbearer.jwks.endpoint.url`."""

    sasl_oauthbearer_allow_unverified_issuer: bool = False
    """Accept tokens of any issuer that has a key of the endpoint. It is insecure if other issuers share the endpoint."""

    sasl_oauthbearer_clock_skew_seconds: Annotated[int, Between(0, 3600)] = 30
    """The tolerated difference between the clocks of the issuer and this broker."""

    sasl_oauthbearer_sub_claim_name: str = "sub"
    """The claim that names the user."""

    sasl_oauthbearer_scope_claim_name: str = "scope"
    """Accepted without effect, for compatibility with Kafka: scopes are not checked."""

    https_ca_location: str | None = None
    """The certificates of the authorities for the endpoint's certificate, in a PEM file. None: those that the system
    trusts.
    """
