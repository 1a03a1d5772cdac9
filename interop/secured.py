"""An Apache Kafka broker with every kind of listener, and the users that may log in to each."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

from rivals import apache_kafka as rival
from tests.broker.security.secured import AUDIENCE, ISSUER
from tests.certificates import Authority
from tests.identity_provider import IdentityProvider

USER, PASSWORD = "alice", 'al1ce;"s-secret'
STORE_PASSWORD = "store-secret"
SESSION_MS = 4000
LISTENERS = ("SSL", "SASL_PLAINTEXT", "SASL_SSL", "MUTUAL")
JAAS = "org.apache.kafka.common.security."


def quoted(text: str) -> str:
    """Escape a value for a JAAS line."""
    return text.replace("\\", "\\\\").replace('"', '\\"')


@contextmanager
def secured_kafka(authority: Authority, provider: IdentityProvider) -> Iterator[rival.ApacheKafka]:
    """An Apache Kafka broker with sessions of a few seconds, so that clients reauthenticate.

    It reads keys from the provider.
    """
    folder = authority.folder
    store = folder / "broker.p12"
    store.write_bytes(authority.certificate().pkcs12(STORE_PASSWORD))
    plain = f'{JAAS}plain.PlainLoginModule required user_{USER}="{quoted(PASSWORD)}";'
    settings = {
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,MUTUAL:SSL,"
        "SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL",
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.location": str(store),
        "ssl.keystore.password": STORE_PASSWORD,
        "ssl.key.password": STORE_PASSWORD,
        "listener.name.mutual.ssl.client.auth": "required",
        "listener.name.mutual.ssl.truststore.type": "PEM",
        "listener.name.mutual.ssl.truststore.location": authority.file,
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
        "connections.max.reauth.ms": str(SESSION_MS),
        "sasl.oauthbearer.jwks.endpoint.url": provider.keys_url,
        "sasl.oauthbearer.expected.audience": AUDIENCE,
        "sasl.oauthbearer.expected.issuer": ISSUER,
    }
    for listener in ("sasl_ssl", "sasl_plaintext"):
        name = f"listener.name.{listener}"
        settings |= {
            f"{name}.plain.sasl.jaas.config": plain.replace("\\", "\\\\"),
            f"{name}.scram-sha-256.sasl.jaas.config": f"{JAAS}scram.ScramLoginModule required;",
            f"{name}.scram-sha-512.sasl.jaas.config": f"{JAAS}scram.ScramLoginModule required;",
            f"{name}.oauthbearer.sasl.jaas.config": (
                f'{JAAS}oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="broker" '
                f'ssl.truststore.type="PEM" ssl.truststore.location="{authority.file}";'
            ),
            f"{name}.oauthbearer.sasl.server.callback.handler.class": (
                f"{JAAS}oauthbearer.OAuthBearerValidatorCallbackHandler"
            ),
        }
    scram = [f"SCRAM-SHA-{bits}=[name={USER},password={PASSWORD}]" for bits in (256, 512)]
    formatted = [word for each in scram for word in ("--add-scram", each)]
    allowed = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={provider.keys_url}"
    with (
        patch.dict("os.environ", JAVA_TOOL_OPTIONS=allowed),
        rival.apache_kafka(settings, listeners=LISTENERS, formatted_with=formatted) as kafka,
    ):
        yield kafka


def client_store(authority: Authority, folder: Path) -> str:
    """Write a client's certificate and key to a PEM file."""
    cert = authority.certificate("me")
    path = folder / "client.pem"
    path.write_text(cert.chain + cert.key)
    return str(path)
