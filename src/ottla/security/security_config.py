"""The settings of security that every client has, under Kafka's names. Values only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal

from ottla.config import Between, Password
from ottla.settings_class import settings

Millis = Annotated[int, Between(0)]
StoreType = Literal["PEM", "PKCS12", "JKS"]


@settings
class SecurityConfig:
    """Who may read along, who the broker is, and who this client is."""

    security_protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = "PLAINTEXT"
    """How connections are secured: not at all, by TLS (`SSL`), by a login (`SASL_PLAINTEXT`) or by both (`SASL_SSL`)."""

    ssl_truststore_location: str | None = None
    """The certificates of those who may sign a broker's, in a file: PEM or PKCS12. librdkafka's `ssl.ca.location` is
    the same. None: those that the operating system trusts. Read again when the file changes."""

    ssl_truststore_certificates: str | None = None
    """The same as text, in PEM (KIP-651)."""

    ssl_truststore_type: StoreType | None = None
    """What the file is; None: as it begins. What only Java can read (`JKS`) is refused with the command that converts it."""

    ssl_truststore_password: Password | None = None
    """The password of a PKCS12 file of certificates."""

    ssl_keystore_location: str | None = None
    """This client's certificate, those that signed it, and its private key, in one file: PEM or PKCS12. Needed where
    brokers ask for it. Read again when the file changes."""

    ssl_keystore_certificate_chain: str | None = None
    """Certificates as text, in PEM; with `ssl.keystore.key`."""

    ssl_keystore_key: Password | None = None
    """The private key as text, in PEM."""

    ssl_keystore_type: StoreType | None = None
    """What the file is; None: as it begins."""

    ssl_keystore_password: Password | None = None
    """The password of a PKCS12 file with the key."""

    ssl_key_password: Password | None = None
    """The password of a private key in PEM that is encrypted."""

    ssl_certificate_location: str | None = None
    """librdkafka's: this client's certificate, and those that signed it, in a PEM file; with `ssl.key.location`."""

    ssl_key_location: str | None = None
    """librdkafka's: the private key in a PEM file of its own."""

    ssl_endpoint_identification_algorithm: Literal["https", "none", ""] = "https"
    """Whether a broker's certificate must be for the name it is connected to by (`https`). Empty, or librdkafka's
    `none`: any name will do, so that whoever has some certificate of the same authority can be the broker."""

    ssl_enabled_protocols: tuple[Literal["TLSv1.2", "TLSv1.3"], ...] = ("TLSv1.2", "TLSv1.3")
    """Which versions of TLS are spoken. There are no older ones."""

    ssl_protocol: Literal["TLSv1.3", "TLSv1.2", "TLS"] = "TLSv1.3"
    """Taken because Kafka's clients have it, and does nothing: `ssl.enabled.protocols` decides."""

    ssl_cipher_suites: tuple[str, ...] = ()
    """The suites of TLS 1.2 that may be used, by Java's names or OpenSSL's. Empty: OpenSSL's choice. Python cannot choose
    among those of TLS 1.3."""

    sasl_mechanism: str | None = None
    """How to log in: `PLAIN`, `SCRAM-SHA-256`, `SCRAM-SHA-512`, `OAUTHBEARER` or `GSSAPI`. Required with `SASL_…`; Kafka's
    default is GSSAPI, which is Kerberos."""

    sasl_username: str | None = None
    """librdkafka's: who logs in by PLAIN or SCRAM."""

    sasl_password: Password | None = None
    """librdkafka's: the password."""

    sasl_jaas_config: Password | None = None
    """Name and password, or client id and secret, as a line of Java's: `….PlainLoginModule required username="…"
    password="…";`. Understood for PLAIN, SCRAM (delegation tokens too), OAUTHBEARER and GSSAPI (`Krb5LoginModule`)."""

    sasl_kerberos_service_name: str | None = None
    """For GSSAPI: the first part of the brokers' principals, of `kafka/broker.example.org@REALM` it is `kafka`, which it is
    where nothing is said."""

    sasl_kerberos_principal: str | None = None
    """For GSSAPI, librdkafka's: who logs in; Java's option `principal`. None: the first in the keytab, or whose ticket there
    is."""

    sasl_kerberos_keytab: str | None = None
    """For GSSAPI, librdkafka's: a file with the keys of who logs in; Java's option `keyTab`. None: with the ticket that kinit
    has fetched."""

    sasl_kerberos_ticket_renew_window_factor: Annotated[float, Between(0.0, 1.0)] = 0.8
    """After which part of its life a ticket of kinit's is renewed. Tickets by a keytab are fetched anew as they are needed."""

    sasl_kerberos_ticket_renew_jitter: Annotated[float, Between(0.0, 1.0)] = 0.05
    """By which part of its life that may be later, by chance."""

    sasl_kerberos_min_time_before_relogin: Millis = 60_000
    """How long a ticket is at least kept before it is renewed, where its life allows that."""

    sasl_kerberos_kinit_cmd: str | None = None
    """Taken because Kafka's clients have it, and does nothing: no command is run because a setting says so; tickets are renewed
    by the `kinit` of the system."""

    sasl_oauth_token_provider: Any = None
    """For OAUTHBEARER: a function without arguments that returns a token, or (token, when it expires, in milliseconds since
    1970), or an object with such a method `token`. It is called on a thread of its own, again before each token expires."""

    sasl_oauthbearer_token_file: str | None = None
    """For OAUTHBEARER: a file with a token, which somebody else keeps fresh, such as a Kubernetes service account's."""

    sasl_oauthbearer_token_endpoint_url: str | None = None
    """For OAUTHBEARER: where to ask for tokens with a client's id and secret, `https://…` only."""

    sasl_oauthbearer_client_credentials_client_id: str | None = None
    """The id to ask with (KIP-1139); librdkafka's `sasl.oauthbearer.client.id`, Java's option `clientId`."""

    sasl_oauthbearer_client_credentials_client_secret: Password | None = None
    """The secret to ask with; librdkafka's `sasl.oauthbearer.client.secret`, Java's option `clientSecret`."""

    sasl_oauthbearer_scope: str | None = None
    """What to ask for; Java's option `scope`."""

    sasl_oauthbearer_header_urlencode: bool = False
    """Whether id and secret are encoded as RFC 6749 (2.3.1) has it before they go into the header. Many endpoints take them
    as they are, and so this is off in Kafka too; set it where one refuses a secret with other than letters and digits."""

    sasl_oauthbearer_extensions: str | None = None
    """What the broker is told beside the token, `name=value` with commas between, such as Confluent Cloud's
    `logicalCluster=lkc-…,identityPoolId=pool-…`; Java's options `extension_…`."""

    sasl_oauthbearer_method: Literal["default", "oidc"] | None = None
    """Taken because librdkafka has it, and does nothing: where tokens come from follows from the other settings."""

    https_ca_location: str | None = None
    """librdkafka's: the certificates of those who may sign the token endpoint's, in a PEM file. None: those that the
    operating system trusts."""

    sasl_login_callback_handler_class: str | None = None
    """Taken with Kafka's own for OAUTHBEARER, which says what is done anyway; no class is loaded."""

    sasl_login_connect_timeout_ms: Annotated[int, Between(1)] = 10_000
    """How long the token endpoint may take to be connected to."""

    sasl_login_read_timeout_ms: Annotated[int, Between(1)] = 10_000
    """How long it may take to answer."""

    sasl_login_retry_backoff_ms: Millis = 100
    """The pause before it is asked again after a failure that may pass; each further pause is twice as long."""

    sasl_login_retry_backoff_max_ms: Millis = 10_000
    """After pauses of this length altogether the failure is told."""

    sasl_login_refresh_window_factor: Annotated[float, Between(0.5, 1.0)] = 0.8
    """After which part of its life a token is replaced."""

    sasl_login_refresh_window_jitter: Annotated[float, Between(0.0, 0.25)] = 0.05
    """By which part of its life that may be later, by chance, so that not all clients ask at once."""

    sasl_login_refresh_min_period_seconds: Annotated[int, Between(0, 900)] = 60
    """How long a token is at least kept, where its life allows that."""

    sasl_login_refresh_buffer_seconds: Annotated[int, Between(0, 3600)] = 300
    """How long before its end a token is at the latest replaced, where its life allows that."""


TokenProvider = Callable[[], Any]
