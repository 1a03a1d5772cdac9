"""Attacks that succeeded against other brokers and clients. Each test name has the CVE number.

Next to what they are about: CVE-2024-56128 in `test_scram_server.py`, CVE-2025-27817's redirects in `test_token_keys.py`,
CVE-2026-35554 in `test_spare_buffers.py`.
"""

from __future__ import annotations

import contextlib
import logging
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ottla import Admin, Broker
from ottla.broker.settings.config import BrokerConfig, read_config
from ottla.client.admin import ConfigResource
from ottla.client.admin.config import AdminConfig, read_admin_settings
from ottla.client.consumer.config import ConsumerConfig, read_consumer_settings
from ottla.client.producer.config import ProducerConfig, read_producer_settings
from ottla.config import options_of
from ottla.errors import ConfigError, KafkaError, OttlaError
from ottla.protocol.sasl.jaas import options_for
from tests.certificates import Authority

AT = {"bootstrap.servers": "127.0.0.1:1"}
EVIL = "module_of_a_stranger"
READERS: dict[str, tuple[type, Callable[[dict[str, Any]], object]]] = {
    "admin": (AdminConfig, lambda given: read_admin_settings({**AT, **given}, {})),
    "consumer": (ConsumerConfig, lambda given: read_consumer_settings({**AT, **given}, {})),
    "producer": (ProducerConfig, lambda given: read_producer_settings({**AT, **given}, {})),
    "broker": (BrokerConfig, read_config),
}
CLASSES = (
    "authorizer.class.name",
    "config.providers",
    "config.providers.file.class",
    "interceptor.classes",
    "key.deserializer",
    "key.serializer",
    "metric.reporters",
    "partition.assignment.strategy",
    "partitioner.class",
    "principal.builder.class",
    "sasl.client.callback.handler.class",
    "sasl.jaas.config",
    "sasl.login.callback.handler.class",
    "sasl.login.class",
    "sasl.server.callback.handler.class",
    "security.providers",
    "ssl.engine.factory.class",
)
"""Kafka's settings that name classes of Java's, whether or not they are there."""
MODULES = ("JndiLoginModule", "LdapLoginModule")
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "GSSAPI")
ELSEWHERE = (
    "file:///etc/passwd",
    "http://169.254.169.254/latest",
    "ftp://127.0.0.1/keys",
    "ldap://127.0.0.1/a",
    "/keys",
)


@pytest.fixture
def stranger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A module that can be imported."""
    (tmp_path / f"{EVIL}.py").write_text("def Thing(*given): ...\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield EVIL
    sys.modules.pop(EVIL, None)


@pytest.mark.parametrize("who", READERS)
def test_cve_2023_25194_and_2025_27818_no_setting_loads_a_module(stranger: str, who: str) -> None:
    kind, read = READERS[who]
    for name in {*CLASSES, *(option.name for option in options_of(kind))}:
        for value in (stranger, f"{stranger}.Thing", f"{stranger}:Thing"):
            with contextlib.suppress(OttlaError):
                read({name: value})
    assert stranger not in sys.modules


@pytest.mark.parametrize("module", MODULES)
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_cve_2023_25194_and_2025_27818_a_jaas_line_accepts_only_known_login_modules(
    module: str, mechanism: str
) -> None:
    line = f'com.sun.security.auth.module.{module} required user.provider.url="ldap://127.0.0.1:1/a" username="u";'
    with pytest.raises(ConfigError, match="unknown login module"):
        options_for(mechanism, line)


@pytest.mark.parametrize("address", ELSEWHERE)
def test_cve_2025_27817_tokens_and_keys_are_fetched_by_https_only(address: str) -> None:
    tokens = {"security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER"}
    with pytest.raises(ConfigError, match="https://"):
        read_admin_settings({**AT, **tokens, "sasl.oauthbearer.token.endpoint.url": address}, {})
    asked: dict[str, Any] = {"sasl_oauthbearer_jwks_endpoint_url": address, "sasl_oauthbearer_expected_audience": "a"}
    with pytest.raises(ConfigError, match="https://"):
        Broker(listen="SASL_PLAINTEXT://127.0.0.1:0", sasl_enabled_mechanisms="OAUTHBEARER", **asked).start()


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """One that shows a certificate from a file."""
    authority = Authority(tmp_path_factory.mktemp("authority"))
    made = authority.certificate()
    store = authority.write("server.pem", made.chain + made.key)
    with Broker(listen="PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:0", ssl_keystore_location=store) as broker:
        yield broker


def change(broker: Broker, name: str, value: str) -> None:
    """The options of a user that may change the configs of a broker."""
    with Admin(bootstrap_servers=broker.addresses["PLAINTEXT"]) as admin:
        admin.alter_configs({ConfigResource("broker", "1"): {name: value}})


@pytest.mark.parametrize("name", ["sasl.oauthbearer.jwks.endpoint.url", "sasl.oauthbearer.token.endpoint.url"])
@pytest.mark.parametrize("listener", ["", "listener.name.ssl."])
def test_cve_2025_27817_the_endpoint_of_the_keys_cannot_be_changed_at_run_time(
    broker: Broker, listener: str, name: str
) -> None:
    with pytest.raises(KafkaError, match="when it starts, and not again"):
        change(broker, listener + name, "https://127.0.0.1:1/")


def test_cve_2024_31141_a_change_at_run_time_reads_no_variable_and_no_file(
    broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("HIDDEN", "leaked")
    (tmp_path / "hidden").write_text("key=leaked\n")
    reported = []
    for reference in ("${env:HIDDEN}", f"${{file:{tmp_path}/hidden:key}}", f"${{directory:{tmp_path}:hidden}}"):
        for name in ("listener.name.ssl.ssl.keystore.location", "log.cleaner.backoff.ms", "config.providers"):
            try:
                change(broker, name, reference)
            except KafkaError as error:
                reported.append(str(error))
    assert len(reported) == 6, "a name that is no config of Kafka's, as config.providers, is kept as text"
    with Admin(bootstrap_servers=broker.addresses["PLAINTEXT"]) as admin:
        (configs,) = admin.describe_configs([ConfigResource("broker", "1")]).values()
    reported += [str(config.value) for config in configs.values()]
    reported += [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert any("${env:HIDDEN}" in text for text in reported)
    assert not [text for text in reported if "leaked" in text]
