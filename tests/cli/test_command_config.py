"""`--command-config FILE`: settings of clients in a file."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from ottla.cli.options import admin_settings, bootstrap_server, client_settings, settings_option

SECRET = "s3cr3t"


@click.command()
@bootstrap_server
@settings_option("client")
def show(bootstrap_server: str, settings: tuple[str, ...]) -> None:
    for name, value in sorted(client_settings(bootstrap_server, settings, max_block_ms=5).items()):
        print(f"{name}={value}")


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "client.properties"
    path.write_text(f"# ours\nbootstrap.servers=a:1\nsecurity.protocol = SASL_SSL\nsasl.password=x\\\n   {SECRET}\n")
    return str(path)


def shown(*arguments: str) -> list[str]:
    result = CliRunner().invoke(show, arguments)
    assert result.exit_code == 0, result.output
    return result.output.splitlines()


def test_settings_of_the_file_are_used(file: str) -> None:
    found = [
        "bootstrap.refused.timeout.ms=3000",
        "bootstrap.servers=a:1",
        "max.block.ms=5",
        f"sasl.password=x{SECRET}",
        "security.protocol=SASL_SSL",
    ]
    assert shown("--command-config", file) == found


def test_command_line_settings_override_the_file(file: str) -> None:
    found = shown("--command-config", file, "--bootstrap-server", "b:2", "--set", "security.protocol=SSL")
    assert "bootstrap.servers=b:2" in found
    assert "security.protocol=SSL" in found


def test_without_a_file_nothing_changes() -> None:
    assert shown("--set", "a.b=c") == [
        "a.b=c",
        "bootstrap.refused.timeout.ms=3000",
        "bootstrap.servers=127.0.0.1:9092",
        "max.block.ms=5",
    ]


@pytest.mark.parametrize(
    ("content", "message"),
    [(None, "No such file"), (b"\xff\xfe", "not UTF-8 text"), (f"password={SECRET}\\u00".encode(), "line 1: ")],
)
def test_an_invalid_file_is_named_and_its_content_is_not_printed(
    tmp_path: Path, content: bytes | None, message: str
) -> None:
    path = tmp_path / "client.properties"
    if content is not None:
        path.write_bytes(content)
    result = CliRunner().invoke(show, ["--command-config", str(path)])
    assert result.exit_code == 2
    assert message in result.output
    assert SECRET not in result.output


def test_an_admin_client_logs_in_with_the_same_file() -> None:
    given = {"bootstrap.servers": "a:1", "ssl.ca.location": "/ca", "sasl.username": "u", "linger.ms": 1, "acks": 1}
    assert admin_settings(given) == {"bootstrap.servers": "a:1", "ssl.truststore.location": "/ca", "sasl.username": "u"}
