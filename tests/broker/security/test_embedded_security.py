"""A broker with authentication inside a program, started with one statement, and its warning without authentication."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from cryptography import x509

from ottla import Admin, Broker, Producer
from ottla.certificates import Authority
from ottla.cli.security.certificates import certificates
from ottla.errors import AuthenticationError, ConfigError

USERS = {"alice": 'pä"ss,\\w]ord', "bob": "b0b"}


def describe_cluster(settings: dict[str, Any]) -> None:
    with Admin(settings) as admin:
        admin.list_topics()


@pytest.mark.parametrize("process", [False, True], ids=["thread", "process"])
def test_one_statement_starts_a_broker_with_users_and_certificates(process: bool) -> None:
    with Broker(listen="SASL_SSL://127.0.0.1:0", users=USERS, process=process) as broker:
        with Producer(broker.client_settings()) as producer:
            producer.send("t", b"v").result(30)
        for mechanism in ("PLAIN", "SCRAM-SHA-512"):
            describe_cluster(broker.client_settings("bob", mechanism=mechanism))
        with pytest.raises(AuthenticationError):
            describe_cluster({**broker.client_settings("bob"), "sasl.password": USERS["alice"]})


def test_passwords_survive_a_restart_and_a_repeated_statement_does_not_change_them(tmp_path: Path) -> None:
    with Broker(tmp_path, listen="SASL_PLAINTEXT://127.0.0.1:0", users=USERS):
        pass
    with Broker(tmp_path, listen="SASL_PLAINTEXT://127.0.0.1:0", users={"bob": "another"}) as broker:
        describe_cluster({**broker.client_settings("bob"), "sasl.password": "b0b"})
    for file in tmp_path.rglob("*"):
        assert not file.is_file() or b"b0b" not in file.read_bytes()


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"listen": "SASL_SSL://127.0.0.1:0", "sasl_enabled_mechanisms": ""}, "has no SASL mechanism"),
        (
            {"listen": "SSL://127.0.0.1:0", "ssl_keystore_location": "/nowhere.pem"},
            "ssl.keystore.location = /nowhere.pem",
        ),
        ({"listen": "SSL://127.0.0.1:0", "ssl_client_auth": "required"}, "ssl.truststore.location"),
        (
            {"listen": "SSL://127.0.0.1:0", "ssl_truststore_location": "/x", "ssl_truststore_certificates": "y"},
            "ssl.truststore.location and ssl.truststore.certificates exclude each other",
        ),
        ({"listen": "SSL://127.0.0.1:0", "ssl_truststore_password": "p"}, "need ssl.truststore.location"),
        ({"listen": "SSL://127.0.0.1:0", "ssl_principal_mapping_rules": "RULE:(/x/"}, "ssl.principal.mapping.rules"),
        ({"listener.name.other.ssl.client.auth": "none"}, "unknown listener 'other'"),
        ({"listener.name.plaintext.ssl.cleint.auth": "none"}, "did you mean 'ssl.client.auth'"),
        ({"listener.name.plaintext": "x"}, "must be listener.name.LISTENER.SETTING"),
        ({"listener.name.plaintext.plain.sasl.server.callback.handler.class": "evil.Class"}, "loads no classes"),
        ({"users": {"a": "two\nlines"}}, "more than one line"),
        ({"add_scram": "SCRAM-SHA-256=[name=a]"}, "add.scram: must be"),
        ({"add_scram": "SCRAM-SHA-256=[name=a,password=b,iterations=1000000000]"}, "4096 to 16384"),
        (
            {"listen": "SASL_PLAINTEXT://127.0.0.1:0", "sasl_enabled_mechanisms": "GSSAPI"},
            "listener.name.sasl_plaintext.gssapi.sasl.jaas.config = com.sun.security.auth.module.Krb5LoginModule",
        ),
        (
            {"listen": "SASL_PLAINTEXT://127.0.0.1:0", "sasl_enabled_mechanisms": "OAUTHBEARER"},
            "sasl.oauthbearer.jwks.file",
        ),
        (
            {
                "listen": "SASL_PLAINTEXT://127.0.0.1:0",
                "sasl_enabled_mechanisms": "OAUTHBEARER",
                "sasl_oauthbearer_jwks_endpoint_url": "file:///etc/passwd",
            },
            "must begin with https://",
        ),
        (
            {
                "listen": "SASL_PLAINTEXT://127.0.0.1:0",
                "sasl_enabled_mechanisms": "OAUTHBEARER",
                "sasl_oauthbearer_jwks_endpoint_url": "https://127.0.0.1:1/keys",
            },
            "sasl.oauthbearer.expected.audience",
        ),
        (
            {
                "listen": "SASL_PLAINTEXT://127.0.0.1:0",
                "sasl_enabled_mechanisms": "OAUTHBEARER",
                "sasl_oauthbearer_jwks_endpoint_url": "https://127.0.0.1:1/keys",
                "sasl_oauthbearer_allow_unverified_audience": True,
            },
            "sasl.oauthbearer.expected.issuer",
        ),
    ],
)
def test_an_invalid_setting_is_a_one_line_error_before_any_listener_is_opened(
    settings: dict[str, Any], why: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        Broker(**settings).start()
    assert why in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_reachable_listener_without_authentication_causes_one_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with (
        caplog.at_level(logging.WARNING),
        Broker(
            listen="A://0.0.0.0:0,B://127.0.0.1:0,SASL_PLAINTEXT://0.0.0.0:0",
            listener_security_protocol_map="A:PLAINTEXT,B:PLAINTEXT",
        ),
    ):
        pass
    (said,) = [
        line
        for line in caplog.messages
        if "listeners without authentication on addresses that other machines can reach" in line
    ]
    assert ": A on 0.0.0.0; use SASL_SSL" in said
    assert "B on" not in said


def run(*arguments: str) -> Any:
    return CliRunner().invoke(certificates, [*arguments], catch_exceptions=True)


def test_three_commands_create_certificates_that_a_broker_and_a_client_accept(tmp_path: Path) -> None:
    folder = str(tmp_path / "certs")
    for arguments in (("authority", folder), ("server", folder), ("client", folder, "alice")):
        assert run(*arguments).exit_code == 0
    keys = {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "certs").iterdir()}
    assert keys == dict.fromkeys(("ca.pem", "ca-key.pem", "server.pem", "client-alice.pem"), 384)
    trust = f"{folder}/ca.pem"
    with Broker(
        listen="SSL://127.0.0.1:0",
        ssl_keystore_location=f"{folder}/server.pem",
        ssl_truststore_location=trust,
        ssl_client_auth="required",
    ) as broker:
        describe_cluster(
            {
                **broker.client_settings(),
                "ssl.ca.location": trust,
                "ssl.keystore.location": f"{folder}/client-alice.pem",
            }
        )
        with pytest.raises(AuthenticationError, match="requires a certificate"):
            describe_cluster({**broker.client_settings(), "ssl.ca.location": trust})


@pytest.mark.parametrize(
    ("hosts", "names"),
    [
        ((), {"localhost", "127.0.0.1", "::1"}),
        (("broker.example.org", "localhost"), {"broker.example.org", "localhost", "127.0.0.1", "::1"}),
        (("broker.example.org",), {"broker.example.org"}),
    ],
)
def test_a_certificate_has_the_given_names_and_with_localhost_the_loopback_addresses(
    hosts: tuple[str, ...], names: set[str], tmp_path: Path
) -> None:
    run("authority", str(tmp_path))
    assert run("server", str(tmp_path), *(word for host in hosts for word in ("--host", host))).exit_code == 0
    made = x509.load_pem_x509_certificate((tmp_path / "server.pem").read_bytes())
    found = made.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert {str(each.value) for each in found} == names


def test_no_file_is_overwritten_and_nothing_is_signed_without_an_authority(tmp_path: Path) -> None:
    folder = str(tmp_path)
    assert isinstance(run("server", folder).exception, ConfigError)
    run("authority", folder)
    before = (tmp_path / "ca.pem").read_text()
    assert "not overwritten" in str(run("authority", folder).exception)
    assert (tmp_path / "ca.pem").read_text() == before
    with pytest.raises(ConfigError, match="for a certificate: expected an ASCII name"):
        Authority.in_folder(tmp_path).server(["bücher\u2028"])
