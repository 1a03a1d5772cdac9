"""Config changes of a broker in a cluster: those it rejects itself, and those it forwards to the controllers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from ottla.broker.apis.config_changes import refused_here
from ottla.broker.controller.controller_events import ForwardedRequest, configs_changed
from ottla.broker.settings.config import BrokerConfig
from ottla.coordination.cluster.config_change import KnownConfigs, decide
from ottla.coordination.cluster.topic_request import Refusal
from ottla.errors import ErrorCode
from ottla.protocol.messages import alter_configs, incremental_alter_configs
from ottla.protocol.messages.metadata import MetadataRequest

BROKER, TOPIC = 4, 2
CALL: Any = SimpleNamespace()
FAULT = Refusal(ErrorCode.INVALID_REQUEST, "server.pem: it cannot be read")


class Access:
    """ACLs that allow nothing."""

    def allows(self, *asked: Any) -> bool:
        return False


def broker(*, everything: bool = True) -> Any:
    """Number 1, which can take up no configs of its own."""
    access = None if everything else Access()
    return SimpleNamespace(
        config=SimpleNamespace(node_id=1),
        access=access,
        topics=SimpleNamespace(find_fault=lambda resource, replaces: FAULT),
    )


def request(module: Any, *resources: tuple[int, str]) -> Any:
    name = "IncrementalAlterConfigsRequest" if module is incremental_alter_configs else "AlterConfigsRequest"
    return getattr(module, name)([module.AlterConfigsResource(kind, name, []) for kind, name in resources])


@pytest.mark.parametrize("module", [alter_configs, incremental_alter_configs])
def test_a_broker_rejects_an_invalid_change_of_its_configs_with_the_whole_request(module: Any) -> None:
    answer: Any = refused_here(broker(), CALL, request(module, (BROKER, "1"), (TOPIC, "t")))
    assert [each.error_code for each in answer.responses] == [ErrorCode.INVALID_REQUEST] * 2
    own, other = (each.error_message for each in answer.responses)
    assert own == "server.pem: it cannot be read"
    assert other == "nothing was changed, for a broker's configs were refused: server.pem: it cannot be read"


@pytest.mark.parametrize("module", [alter_configs, incremental_alter_configs])
def test_a_change_of_another_brokers_configs_is_rejected_with_that_broker_named(module: Any) -> None:
    answer: Any = refused_here(broker(), CALL, request(module, (BROKER, "2")))
    (reported,) = answer.responses
    assert reported.error_code == ErrorCode.INVALID_REQUEST
    assert (
        reported.error_message
        == "this is broker 1, and only broker 2 can apply its configs: send the request to that broker"
    )
    assert refused_here(broker(everything=False), CALL, request(module, (BROKER, "2"))) is None


@pytest.mark.parametrize("resource", [(BROKER, "nobody"), (BROKER, ""), (TOPIC, "1")])
def test_a_request_without_configs_of_a_broker_is_left_to_the_controller(resource: tuple[int, str]) -> None:
    asked = request(incremental_alter_configs, resource)
    assert refused_here(broker(), CALL, asked) is None
    assert refused_here(broker(), CALL, MetadataRequest([])) is None


def test_a_principal_without_permission_learns_nothing_about_the_brokers_files() -> None:
    asked = request(incremental_alter_configs, (BROKER, "1"))
    assert refused_here(broker(everything=False), CALL, asked) is None


@pytest.mark.parametrize(
    ("name", "refused"),
    [
        ("listener.name.ssl.ssl.keystore.location", None),
        ("listener.name.outside.ssl.key.password", None),
        ("log.cleaner.backoff.ms", None),
        ("listener.name.ssl.max.connections", "a broker reads [listener.name.ssl.max.connections] when it starts"),
        ("listener.name.ssl", "a broker reads [listener.name.ssl] when it starts"),
        ("ssl.keystore.location", "a broker reads [ssl.keystore.location] when it starts"),
    ],
)
def test_controllers_accept_store_settings_of_broker_listeners_only(name: str, refused: str | None) -> None:
    change = incremental_alter_configs.AlterableConfig(name, 0, "7")
    resource = incremental_alter_configs.AlterConfigsResource(BROKER, "2", [change])
    asked = incremental_alter_configs.IncrementalAlterConfigsRequest([resource])
    decision = decide(KnownConfigs({}, {}, {}, {}), configs_changed(ForwardedRequest(asked, 1, BrokerConfig())))
    (reply,) = decision.replies
    (answer,) = reply.message
    assert (answer is None) if refused is None else str(answer).startswith(refused)
    assert len(decision.records) == (refused is None)
