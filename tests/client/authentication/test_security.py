"""Combinations of security settings, and the errors for invalid ones."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.client.admin.config import AdminConfig, read_admin_settings
from ottla.client.consumer.config import read_consumer_settings
from ottla.client.network.bootstrap import bootstrap_nodes
from ottla.client.producer.config import read_producer_settings
from ottla.config import Password, options_of
from ottla.errors import ConfigError, NotYetError, OttlaError
from ottla.security.kerberos_login import KerberosLogin, kerberos_login
from ottla.security.security import (
    client_credentials,
    extensions_of,
    key_store,
    password_login,
    tls_settings,
    trust_store,
)

AT = {"bootstrap.servers": "127.0.0.1:9092"}
LOGIN = {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.username": "u", "sasl.password": "p"}
TOKENS = {"security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER"}
JAAS = "org.apache.kafka.common.security."
SECRET = "very-s3cret"


def read(settings: dict[str, Any], **keywords: Any) -> AdminConfig:
    return read_admin_settings({**AT, **settings}, keywords)


@pytest.mark.parametrize("reader", [read_admin_settings, read_consumer_settings, read_producer_settings])
def test_every_client_has_the_settings(reader: Any) -> None:
    config = reader({**AT, **LOGIN}, {})
    assert (config.security_protocol, config.sasl_username, config.sasl_password) == ("SASL_SSL", "u", Password("p"))


def test_certificates_and_host_names_are_verified_by_default() -> None:
    assert tls_settings(read({"security.protocol": "SSL"})).check_name
    for nothing in ("", "none"):
        reported = {"security.protocol": "SSL", "ssl.endpoint.identification.algorithm": nothing}
        assert not tls_settings(read(reported)).check_name


def test_names_of_librdkafka_are_accepted() -> None:
    config = read(
        {
            "security.protocol": "sasl_ssl",
            "sasl.mechanisms": "SCRAM-SHA-512",
            "sasl.username": "u",
            "sasl.password": "p",
            "ssl.ca.location": "/ca.pem",
            "ssl.certificate.location": "/me.pem",
            "ssl.key.location": "/me.key",
        }
    )
    trust, mine = trust_store(config), key_store(config)
    assert config.sasl_mechanism == "SCRAM-SHA-512"
    assert trust is not None
    assert trust.location == "/ca.pem"
    assert mine is not None
    assert (mine.chain_location, mine.key_location) == ("/me.pem", "/me.key")
    assert read({}, security_protocol="SSL", ssl_ca_location="/ca").ssl_truststore_location == "/ca"


def test_one_setting_under_both_names_is_refused() -> None:
    with pytest.raises(ConfigError, match="are the same setting"):
        read({"security.protocol": "SSL", "ssl.ca.location": "/a", "ssl.truststore.location": "/b"})


@pytest.mark.parametrize("module", ["plain.PlainLoginModule", "scram.ScramLoginModule"])
def test_a_java_jaas_line_replaces_username_and_password(module: str) -> None:
    mechanism = "PLAIN" if "Plain" in module else "SCRAM-SHA-256"
    line = f'{JAAS}{module} required username="al\\"ice" password="a;b=c d";'
    config = read({"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": mechanism, "sasl.jaas.config": line})
    login = password_login(config)
    assert (login.username, login.password) == ('al"ice', Password("a;b=c d"))


def test_a_delegation_token_is_known_by_its_option() -> None:
    line = f"{JAAS}scram.ScramLoginModule required username=id password=hmac tokenauth=true;"
    reported = {"security.protocol": "SASL_SSL", "sasl.mechanism": "SCRAM-SHA-256", "sasl.jaas.config": line}
    assert password_login(read(reported)).token


def test_a_line_of_javas_for_tokens_has_id_secret_scope_and_extensions() -> None:
    line = (
        f'{JAAS}oauthbearer.OAuthBearerLoginModule required clientId="me" clientSecret="{SECRET}" scope="kafka" '
        f'extension_logicalCluster="lkc-1" ;'
    )
    url = "https://idp.example.org/token"
    config = read({**TOKENS, "sasl.jaas.config": line, "sasl.oauthbearer.token.endpoint.url": url})
    asked = client_credentials(config)
    assert asked is not None
    assert (asked.client_id, asked.client_secret, asked.scope) == ("me", Password(SECRET), "kafka")
    assert extensions_of(config) == {"logicalCluster": "lkc-1"}


PLAIN_LINE = f'{JAAS}plain.PlainLoginModule required username="u" password="{SECRET}";'
KRB5 = "com.sun.security.auth.module.Krb5LoginModule required"
KERBEROS = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "GSSAPI"}
WRONG: list[tuple[dict[str, Any], type[OttlaError], str]] = [
    ({"sasl.mechanism": "PLAIN"}, ConfigError, "security.protocol is not.*add security.protocol=SASL_SSL"),
    ({"ssl.ca.location": "/x"}, ConfigError, "security.protocol is not.*add security.protocol=SSL"),
    ({"security.protocol": "TLS"}, ConfigError, "security.protocol = 'TLS': must be one of"),
    ({"security.protocol": "SASL_SSL"}, ConfigError, "sasl.mechanism is required.*GSSAPI, which is Kerberos"),
    ({**LOGIN, "sasl.mechanism": "GSSAPI"}, ConfigError, "sasl.username cannot be used with sasl.mechanism=GSSAPI"),
    ({**KERBEROS, "sasl.jaas.config": f'{KRB5} debug="x";'}, ConfigError, "useKeyTab=true, .* or useTicketCache=true"),
    ({**KERBEROS, "sasl.jaas.config": f"{KRB5} useKeyTab=true;"}, ConfigError, 'without a file: set keyTab="…"'),
    (
        {**KERBEROS, "sasl.jaas.config": PLAIN_LINE},
        ConfigError,
        "is for sasl.mechanism = PLAIN, but sasl.mechanism is GSSAPI",
    ),
    (
        {**KERBEROS, "sasl.jaas.config": f'{KRB5} useTicketCache=true principal="a";', "sasl.kerberos.principal": "b"},
        ConfigError,
        "sasl.kerberos.principal and principal in sasl.jaas.config have different values",
    ),
    (
        {**KERBEROS, "sasl.kerberos.service.name": "kafka/broker@REALM"},
        ConfigError,
        "must be the first part of the broker's principal alone, 'kafka'",
    ),
    ({**LOGIN, "sasl.mechanism": "AWS_MSK_IAM"}, NotYetError, "sasl.oauth.token.provider"),
    ({**LOGIN, "sasl.mechanism": "CRAM"}, ConfigError, "'CRAM': must be one of PLAIN, SCRAM-SHA-256"),
    ({**LOGIN, "sasl.password": 5}, ConfigError, "^sasl.password: must be text$"),
    ({**LOGIN, "sasl.username": None}, ConfigError, "needs a username; set sasl.username"),
    ({**LOGIN, "sasl.password": None}, ConfigError, "needs a password; set sasl.password"),
    ({**LOGIN, "sasl.jaas.config": PLAIN_LINE}, ConfigError, "exclude each other: give only one"),
    ({**LOGIN, "sasl.login.callback.handler.class": "org.example.Mine"}, NotYetError, "no class is loaded"),
    ({**TOKENS}, ConfigError, "OAUTHBEARER needs one of"),
    ({**TOKENS, "sasl.oauth.token.provider": "x"}, ConfigError, "must be a function without arguments"),
    (
        {**TOKENS, "sasl.oauthbearer.token.file": "/t", "sasl.oauth.token.provider": lambda: "t"},
        ConfigError,
        "exclude each other",
    ),
    ({**TOKENS, "sasl.oauthbearer.token.endpoint.url": "file:///etc/passwd"}, ConfigError, "must be https://"),
    ({**TOKENS, "sasl.oauthbearer.token.endpoint.url": "http://169.254.169.254/"}, ConfigError, "start with https://"),
    ({**TOKENS, "sasl.oauthbearer.token.endpoint.url": "https://a/"}, ConfigError, "needs a client's id"),
    (
        {**TOKENS, "sasl.oauthbearer.token.file": "/t", "sasl.oauthbearer.extensions": "auth=x"},
        ConfigError,
        "sasl.oauthbearer.extensions: the extension 'auth'",
    ),
    (
        {"security.protocol": "SSL", "ssl.truststore.location": "/x", "ssl.truststore.certificates": "y"},
        ConfigError,
        "exclude each other",
    ),
    ({"security.protocol": "SSL", "ssl.truststore.password": SECRET}, ConfigError, "need ssl.truststore.location"),
    ({"security.protocol": "SSL", "ssl.key.location": "/x"}, ConfigError, "belong together"),
    ({"security.protocol": "SSL", "ssl.keystore.key": SECRET}, ConfigError, "belong together"),
    (
        {"security.protocol": "SSL", "ssl.keystore.location": "/x", "ssl.keystore.key": SECRET},
        ConfigError,
        "exclude each other",
    ),
    ({"security.protocol": "SSL", "ssl.enabled.protocols": "TLSv1.1"}, ConfigError, "must be one of TLSv1.2, TLSv1.3"),
    ({"enable.ssl.certificate.verification": "false"}, ConfigError, "certificates are always checked"),
    ({"ssl.cafile": "/x"}, ConfigError, "it is called 'ssl.truststore.location' here"),
    ({"sasl.plain.password": SECRET}, ConfigError, "it is called 'sasl.password' here"),
    ({"sasl.pasword": SECRET}, ConfigError, "did you mean 'sasl.password'"),
]


@pytest.mark.parametrize(("settings", "kind", "message"), WRONG)
def test_conflicting_security_settings_are_one_error_with_the_remedy(
    settings: dict[str, Any], kind: type[OttlaError], message: str
) -> None:
    with pytest.raises(kind, match=message) as caught:
        read(settings)
    assert SECRET not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_explicit_protocol_may_leave_settings_of_other_protocols_unused() -> None:
    assert read({"security.protocol": "PLAINTEXT", "ssl.ca.location": "/x", "sasl.mechanism": "PLAIN"})


def test_no_secret_is_shown() -> None:
    config = read({**LOGIN, "sasl.password": SECRET, "ssl.key.password": SECRET})
    for shown in (repr(config), str(config), repr(config.sasl_password), f"{config.sasl_password}"):
        assert SECRET not in shown
    assert "[hidden]" in repr(config)


def test_every_secret_setting_is_marked_as_secret() -> None:
    words = ("password", "secret", "jaas", "keystore_key")
    secret = {option.field for option in options_of(AdminConfig) if any(word in option.field for word in words)}
    typed = {option.field for option in options_of(AdminConfig) if "Password" in str(option.type)}
    assert secret == typed


def test_a_bootstrap_server_may_start_with_its_security_protocol() -> None:
    (node,) = bootstrap_nodes(["SASL_SSL://a.example.org:9093"], protocol="SASL_SSL")
    assert (node.host, node.port) == ("a.example.org", 9093)
    with pytest.raises(ConfigError, match=r"security.protocol is PLAINTEXT; set security.protocol=SASL_SSL"):
        bootstrap_nodes(["SASL_SSL://a.example.org:9093"])


def test_a_keytab_is_used_only_if_the_jaas_line_enables_it() -> None:
    line = f'{KRB5} useTicketCache=true ticketCache="/c" useKeyTab={{}} keyTab="/k" principal="a";'
    by_ticket, by_key = (kerberos_login(read({**KERBEROS, "sasl.jaas.config": line.format(x)})) for x in (False, True))
    assert by_ticket == KerberosLogin(principal="a", cache="/c")
    assert by_key == KerberosLogin(principal="a", cache="/c", keytab="/k")
