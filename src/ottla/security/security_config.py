"""The security settings that every client has, under Kafka's names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal

from ottla.config import Between, Password
from ottla.settings_class import settings

Millis = Annotated[int, Between(0)]
StoreType = Literal["PEM", "PKCS12", "JKS"]


@settings
class SecurityConfig:
    """Encryption, and the identities of broker and client."""

    security_protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = "PLAINTEXT"
    """The security of connections: `PLAINTEXT`, TLS (`SSL`), login (`SASL_PLAINTEXT`), or both (`SASL_SSL`)."""

    ssl_truststore_location: str | None = None
    """A file with trusted certificate authorities: PEM or PKCS12; librdkafka's `ssl.ca.location`. None: those of the operating
    system. Read again when the file changes.
    """

    ssl_truststore_certificates: str | None = None
    """Trusted certificate authorities as PEM text (KIP-651)."""

    ssl_truststore_type: StoreType | None = None
    """The format of the file;

    None: detected. `JKS`, which only Java can read, raises an error with the conversion command.
    """

    ssl_truststore_password: Password | None = None
    """The password of a PKCS12 truststore."""

    ssl_keystore_location: str | None = None
    """The client's certificate chain and private key in one file: PEM or PKCS12. Needed if brokers require it. Read again when
    the file changes.
    """

    ssl_keystore_certificate_chain: str | None = None
    """The client's certificate chain as PEM text; with `ssl.keystore.key`."""

    ssl_keystore_key: Password | None = None
    """The private key as PEM text."""

    ssl_keystore_type: StoreType | None = None
    """The format of the file; None: detected."""

    ssl_keystore_password: Password | None = None
    """The password of a PKCS12 keystore."""

    ssl_key_password: Password | None = None
    """The password of an encrypted PEM private key."""

    ssl_certificate_location: str | None = None
    """librdkafka's setting: a PEM file with the client's certificate chain; with `ssl.key.location`."""

    ssl_key_location: str | None = None
    """librdkafka's setting: a PEM file with the private key."""

    ssl_endpoint_identification_algorithm: Literal["https", "none", ""] = "https"
    """`https`: the broker's certificate must match the host name. Empty, or librdkafka's `none`: any name is accepted, so that
    every owner of a certificate of the same authority can impersonate the broker.
    """

    ssl_enabled_protocols: tuple[Literal["TLSv1.2", "TLSv1.3"], ...] = ("TLSv1.2", "TLSv1.3")
    """The enabled TLS versions. Older ones are not supported."""

    ssl_protocol: Literal["TLSv1.3", "TLSv1.2", "TLS"] = "TLSv1.3"
    """Accepted for compatibility with Kafka's clients, without effect: `ssl.enabled.protocols` decides."""

    ssl_cipher_suites: tuple[str, ...] = ()
    """The enabled TLS 1.2 suites, by Java's or OpenSSL's names. Empty: OpenSSL's default. Python cannot select suites of
    TLS 1.3.
    """

    sasl_mechanism: str | None = None
    """The login mechanism: `PLAIN`, `SCRAM-SHA-256`, `SCRAM-SHA-512`, `OAUTHBEARER` or `GSSAPI`. Required with `SASL_…`; Kafka's
    default is GSSAPI (Kerberos).
    """

    sasl_username: str | None = None
    """librdkafka's setting: the user name of PLAIN or SCRAM."""

    sasl_password: Password | None = None
    """librdkafka's setting: the password."""

    sasl_jaas_config: Password | None = None
    """User name and password, or client id and secret, as a JAAS line: `….PlainLoginModule required username="…"
    password="…";`. Supported for PLAIN, SCRAM (also delegation tokens), OAUTHBEARER and GSSAPI (`Krb5LoginModule`).
    """

    sasl_kerberos_service_name: str | None = None
    """For GSSAPI: the first part of the brokers' principals;

    `kafka` in `kafka/broker.example.org@REALM`, which is the default.
    """

    sasl_kerberos_principal: str | None = None
    """For GSSAPI, librdkafka's setting: the client's principal; JAAS option `principal`. None: the first in the keytab, or that
    of the ticket.
    """

    sasl_kerberos_keytab: str | None = None
    """For GSSAPI, librdkafka's setting: the client's keytab; JAAS option `keyTab`. None: use the ticket of kinit."""

    sasl_kerberos_ticket_renew_window_factor: Annotated[float, Between(0.0, 1.0)] = 0.8
    """The share of a kinit ticket's lifetime after which it is renewed. Tickets by a keytab are requested on demand."""

    sasl_kerberos_ticket_renew_jitter: Annotated[float, Between(0.0, 1.0)] = 0.05
    """The maximum random addition to this share."""

    sasl_kerberos_min_time_before_relogin: Millis = 60_000
    """The minimum time before a ticket is renewed, if its lifetime allows it."""

    sasl_kerberos_kinit_cmd: str | None = None
    """Accepted for compatibility with Kafka's clients, without effect: settings cannot run commands; tickets are renewed by the
    system's `kinit`.
    """

    sasl_oauth_token_provider: Any = None
    """For OAUTHBEARER: a function without arguments that returns a token, or (token, expiry in ms since 1970), or an object with
    such a method `token`. It is called in a separate thread, again before each token expires.
    """

    sasl_oauthbearer_token_file: str | None = None
    """For OAUTHBEARER: a file with a token that another program renews, such as a Kubernetes service account's."""

    sasl_oauthbearer_token_endpoint_url: str | None = None
    """For OAUTHBEARER: the endpoint for token requests with client id and secret; `https://…` only."""

    sasl_oauthbearer_client_credentials_client_id: str | None = None
    """The client id (KIP-1139); librdkafka's `sasl.oauthbearer.client.id`, JAAS option `clientId`."""

    sasl_oauthbearer_client_credentials_client_secret: Password | None = None
    """The client secret; librdkafka's `sasl.oauthbearer.client.secret`, JAAS option `clientSecret`."""

    sasl_oauthbearer_scope: str | None = None
    """The requested scope; JAAS option `scope`."""

    sasl_oauthbearer_header_urlencode: bool = False
    """If true, id and secret are encoded in the header as in RFC 6749, section 2.3.1. Many endpoints do not expect this, so it is
    off as in Kafka; enable it if an endpoint rejects a secret with special characters.
    """

    sasl_oauthbearer_extensions: str | None = None
    """SASL extensions that are sent with the token, `name=value` separated by commas, such as Confluent Cloud's
    `logicalCluster=lkc-…,identityPoolId=pool-…`; JAAS options `extension_…`.
    """

    sasl_oauthbearer_method: Literal["default", "oidc"] | None = None
    """Accepted for compatibility with librdkafka, without effect: the source of tokens follows from the other settings.
    """

    https_ca_location: str | None = None
    """librdkafka's setting: a PEM file with the authorities of the token endpoint's certificate. None: those of the operating
    system.
    """

    sasl_login_callback_handler_class: str | None = None
    """Only Kafka's own handler for OAUTHBEARER is accepted, the behaviour of which is built in; no class is loaded."""

    sasl_login_connect_timeout_ms: Annotated[int, Between(1)] = 10_000
    """The timeout for the connection to the token endpoint."""

    sasl_login_read_timeout_ms: Annotated[int, Between(1)] = 10_000
    """The timeout for its response."""

    sasl_login_retry_backoff_ms: Millis = 100
    """The pause before a retry after a temporary failure; it doubles with each retry."""

    sasl_login_retry_backoff_max_ms: Millis = 10_000
    """The total of pauses after which the failure is reported."""

    sasl_login_refresh_window_factor: Annotated[float, Between(0.5, 1.0)] = 0.8
    """The share of a token's lifetime after which it is replaced."""

    sasl_login_refresh_window_jitter: Annotated[float, Between(0.0, 0.25)] = 0.05
    """The maximum random addition to this share, so that not all clients request tokens at the same time."""

    sasl_login_refresh_min_period_seconds: Annotated[int, Between(0, 900)] = 60
    """The minimum time before a token is replaced, if its lifetime allows it."""

    sasl_login_refresh_buffer_seconds: Annotated[int, Between(0, 3600)] = 300
    """The minimum remaining lifetime when a token is replaced, if its lifetime allows it."""


TokenProvider = Callable[[], Any]
