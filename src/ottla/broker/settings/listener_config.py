"""The settings of a listener's security, under Kafka's names. Values only.

Each may be set for all listeners, `ssl.client.auth=required`, and for one, `listener.name.internal.ssl.client.auth=none`; what
a login goes by also for one mechanism of it, `listener.name.internal.plain.sasl.jaas.config=…`.
"""

from __future__ import annotations

from typing import Annotated, Literal

from ottla.config import Between, Password
from ottla.model import INT32_MAX
from ottla.settings_class import settings

StoreType = Literal["PEM", "PKCS12", "JKS"]


@settings
class ListenerConfig:
    """Who may read along, and who clients are."""

    ssl_keystore_location: str | None = None
    """The broker's certificate, those that signed it, and its private key, in one file: PEM or PKCS12. Read again when the
    file changes."""

    ssl_keystore_certificate_chain: Password | None = None
    """Certificates as text, in PEM; with `ssl.keystore.key`."""

    ssl_keystore_key: Password | None = None
    """The private key as text, in PEM."""

    ssl_keystore_type: StoreType | None = None
    """What the file is; None: as it begins. What only Java can read (`JKS`) is refused with the command that converts it."""

    ssl_keystore_password: Password | None = None
    """The password of a PKCS12 file with the key."""

    ssl_key_password: Password | None = None
    """The password of a private key in PEM that is encrypted."""

    ssl_truststore_location: str | None = None
    """The certificates of those who may sign a client's, in a file: PEM or PKCS12. Read again when the file changes."""

    ssl_truststore_certificates: Password | None = None
    """The same as text, in PEM (KIP-651)."""

    ssl_truststore_type: StoreType | None = None
    """What the file is; None: as it begins."""

    ssl_truststore_password: Password | None = None
    """The password of a PKCS12 file of certificates."""

    ssl_client_auth: Literal["required", "requested", "none"] = "none"
    """Whether clients are asked for a certificate, and whether they may come without one."""

    ssl_endpoint_identification_algorithm: Literal["https", "none", ""] = "https"
    """Whether the certificate of another broker, or of a controller, must be for the name it is connected to by (`https`).
    Empty or `none`: any name will do."""

    ssl_principal_mapping_rules: str = "DEFAULT"
    """How the name in a client's certificate becomes that of a user: rules `RULE:pattern/replacement/[LU]` with commas
    between, and `DEFAULT` for the name as it is. The first that fits counts."""

    ssl_enabled_protocols: tuple[Literal["TLSv1.2", "TLSv1.3"], ...] = ("TLSv1.2", "TLSv1.3")
    """Which versions of TLS are spoken. There are no older ones."""

    ssl_cipher_suites: tuple[str, ...] = ()
    """The suites of TLS 1.2 that may be used, by Java's names or OpenSSL's. Empty: OpenSSL's choice. Python cannot choose
    among those of TLS 1.3."""

    sasl_enabled_mechanisms: tuple[Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "GSSAPI"], ...] = (
        "SCRAM-SHA-256",
        "SCRAM-SHA-512",
    )
    """How clients may log in. Kafka's default is GSSAPI, which is Kerberos and needs the extra `kerberos` and a keytab."""

    sasl_jaas_config: Password | None = None
    """A line of Java's, for one listener and mechanism: users of PLAIN, `….PlainLoginModule required user_alice="…";`, or for
    GSSAPI where the broker's keys are, `….Krb5LoginModule required useKeyTab=true keyTab="…" principal="kafka/…";`. Users with
    a SCRAM password can log in by PLAIN as well, where PLAIN is enabled, without being in such a line."""

    sasl_kerberos_principal_to_local_rules: tuple[str, ...] = ("DEFAULT",)
    """How a principal of Kerberos becomes a user: rules `RULE:[n:form](pattern)s/pattern/replacement/` with g, L or U behind,
    commas between, and `DEFAULT` for the first part of those of the machine's own realm. The first that fits counts."""

    sasl_kerberos_min_time_before_relogin: Annotated[int, Between(0)] = 60_000
    """How long Kafka waits before it reads its keys again, in ms. Taken so that tools and programs may set it, and without effect: the
    broker's are read at each login."""

    sasl_kerberos_service_name: str | None = None
    """The first part of other brokers' principals, where this one comes to them by GSSAPI; `kafka` where nothing is said."""

    sasl_server_max_receive_size: Annotated[int, Between(512, INT32_MAX)] = 524_288
    """Largest request of a connection that has not logged in; one that announces more is closed, and one that
    announces more than 32 KiB in any case."""

    connections_max_reauth_ms: Annotated[int, Between(0)] = 0
    """Time after which a connection has to log in again, or is closed (KIP-368); 0 is never. It is earlier where a token
    ends before."""

    sasl_oauthbearer_jwks_endpoint_url: str | None = None
    """Where the keys are that may sign tokens, `https://…` only."""

    sasl_oauthbearer_jwks_file: str | None = None
    """The same in a file, JSON as an endpoint would tell it. Read again when the file changes."""

    sasl_oauthbearer_jwks_endpoint_refresh_ms: Annotated[int, Between(1000)] = 3_600_000
    """How often the endpoint is asked again. It is also asked for a key that is not known, every ten seconds at most."""

    sasl_oauthbearer_expected_audience: tuple[str, ...] = ()
    """For whom a token must have been made; one of these. Required with OAUTHBEARER: a token for another service must not
    do here."""

    sasl_oauthbearer_expected_issuer: str | None = None
    """Who must have made it; None: whoever has the key."""

    sasl_oauthbearer_clock_skew_seconds: Annotated[int, Between(0, 3600)] = 30
    """By how much the clocks of whoever makes tokens may differ from this one."""

    sasl_oauthbearer_sub_claim_name: str = "sub"
    """The claim that names the user."""

    sasl_oauthbearer_scope_claim_name: str = "scope"
    """Taken because Kafka has it, and does nothing: scopes are not looked at."""

    https_ca_location: str | None = None
    """The certificates of those who may sign the endpoint's, in a PEM file. None: those that the system trusts."""
