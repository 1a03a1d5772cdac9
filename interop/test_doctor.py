"""`ottla doctor`, users and quotas at our broker and at Apache Kafka."""

from __future__ import annotations

import json

import pytest

from ottla import Admin, NewTopic
from ottla.cli.main import main
from ottla.client.admin import ClientQuotaEntity
from tests.patience import eventually


def test_the_doctor_can_check_everything(any_broker: str, capsys: pytest.CaptureFixture[str]) -> None:
    with Admin(bootstrap_servers=any_broker) as admin:
        admin.create_topics([NewTopic("for-the-doctor")])
    main(["doctor", "--bootstrap-server", any_broker, "--json"])
    found = json.loads(capsys.readouterr().out)
    assert [each for each in found if "could not be checked" in each["seen"]] == []
    levels = {each["check"]: each["level"] for each in found}
    assert {levels[check] for check in ("bootstrap", "protocol", "broker", "advertised", "clock")} == {"ok"}


def test_users_and_quotas_are_created_and_deleted(any_broker: str) -> None:
    at = ("--bootstrap-server", any_broker)
    assert main(["users", "add", "nurse", "--insecure-password", "x", *at]) == 0
    with Admin(bootstrap_servers=any_broker) as admin:  # the controller notifies the broker a little later
        eventually(lambda: admin.describe_user_scram_credentials().get("nurse") == {"SCRAM-SHA-512": 4096})
        assert main(["users", "alter", "nurse", "--insecure-password", "y", "--iterations", "8192", *at]) == 0
        eventually(lambda: admin.describe_user_scram_credentials(["nurse"])["nurse"] == {"SCRAM-SHA-512": 8192})
        assert main(["users", "delete", "nurse", "--yes", *at]) == 0
        eventually(lambda: "nurse" not in admin.describe_user_scram_credentials())
        nurse = ClientQuotaEntity(user="nurse")
        assert main(["quotas", "alter", "--user", "nurse", "--add-config", "producer_byte_rate=5", *at]) == 0
        eventually(lambda: admin.describe_client_quotas(nurse) == {nurse: {"producer_byte_rate": 5.0}})
        assert main(["quotas", "delete", "--user", "nurse", "--yes", *at]) == 0
        eventually(lambda: admin.describe_client_quotas(nurse) == {})
