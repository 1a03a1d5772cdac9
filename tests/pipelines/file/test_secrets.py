"""Secrets are used and never printed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ottla.errors import ConfigError
from ottla.pipelines.address import check_port, without_secrets
from ottla.pipelines.databases.mysql import address_of
from ottla.pipelines.databases.url import database_of
from ottla.pipelines.secrets import Secrets
from ottla.pipelines.sinks.spark import SparkSink
from tests.pipelines.file.files import mistakes, pipeline, read

SINK = "{type: spark, format: jdbc, options: {password: '${env:PASSWORD}'}}"


def test_a_model_keeps_the_placeholder_and_prints_no_secret() -> None:
    (one,) = read(pipeline(sink=SINK), PASSWORD="open sesame")
    assert isinstance(one.model.sink, SparkSink)
    assert one.secrets.resolve(str(one.model.sink.options["password"])) == "open sesame"
    assert "sesame" not in repr(one) + str(one.model) + repr(one.secrets) + one.model.model_dump_json()


def test_an_error_next_to_a_secret_does_not_show_it() -> None:
    text = pipeline(sink=SINK.replace("format: jdbc", "format: 1"))
    assert "sesame" not in "".join(mistakes(text, PASSWORD="open sesame"))


def test_secrets_in_messages_of_other_libraries_are_hidden(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("hush\n", encoding="utf-8")
    secrets = Secrets({"USER": "jane"}, tmp_path)
    assert secrets.resolve("${env:USER}:${file:token}@host") == "jane:hush@host"
    assert secrets.hide("cannot log in as jane with hush") == "cannot log in as ${env:USER} with ${file:token}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("${env:NOPE}", "environment variable 'NOPE' is not set; set it"),
        ("${file:nope}", "the file 'nope' cannot be read: No such file or directory"),
        ("${vault:NOPE}", "unknown kind of secret 'vault'; there are env and file"),
        ("${evn:NOPE}", "unknown kind of secret 'evn'; did you mean 'env'?"),
    ],
)
def test_a_secret_that_is_not_there_is_reported(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError) as error:
        Secrets({}, tmp_path).resolve(text)
    assert message in str(error.value)


def test_text_that_only_resembles_a_secret_is_kept() -> None:
    assert Secrets({}, Path()).resolve("a $1 ${name} $env:X") == "a $1 ${name} $env:X"


HARD = "a#b?c/d@e%f:g&h=i j€"


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://shop:${env:PW}@db:5432/name",
        "mysql://shop:${env:PW}@db:5432/name",
        "postgresql://shop:${file:run/pw}@db:5432/name?sslmode=disable",
        "postgresql://${env:BOTH}@db:5432/name",
        "postgresql://shop@db:5432/name?password=${env:PW}",
        "postgresql://shop@db:5432/name?password=${env:PW}&sslmode=disable",
    ],
)
def test_a_password_of_any_characters_is_one_in_an_address(tmp_path: Path, address: str) -> None:
    from psycopg.conninfo import conninfo_to_dict

    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "pw").write_text(HARD + "\n", encoding="utf-8")
    secrets = Secrets({"PW": HARD, "BOTH": f"shop:{HARD}"}, tmp_path)
    check_port(address)
    resolved = secrets.resolve_address(address)
    known = address_of(resolved) if address.startswith("mysql") else conninfo_to_dict(resolved)
    assert (known["user"], known["password"], known["host"]) == ("shop", HARD, "db")
    assert str(known["port"]) == "5432"
    assert without_secrets(resolved).endswith("://db:5432/name")
    assert not any(part in secrets.hide(f"no way to {resolved}") for part in (HARD, "d@e", "d%40e", "shop:a"))


def test_an_address_that_is_one_secret_is_taken_as_it_is() -> None:
    secrets = Secrets({"URL": "postgresql://shop:a%40b@db/name", "DB": "name?sslmode=disable"}, Path())
    assert secrets.resolve_address("${env:URL}") == "postgresql://shop:a%40b@db/name"
    assert secrets.resolve_address("postgresql://db/${env:DB}") == "postgresql://db/name?sslmode=disable"


@pytest.mark.parametrize("password", ["a#b", "a?b", "a/b", "12/b", "a@b", "a%b", "a#b@c/d"])
@pytest.mark.parametrize("kind", ["postgresql", "mysql"])
def test_no_message_has_a_part_of_a_password_that_breaks_its_address(kind: str, password: str, tmp_path: Path) -> None:
    url = f"{kind}://shop:{password}@db/name"
    assert without_secrets(url) == f"{kind}://db/name"
    with pytest.raises(ConfigError) as error:
        database_of(url, tmp_path).open()
    assert "a user or password with one of # ? / @ % in it" in str(error.value)
    assert not re.search(r"[ab]#|12|shop", str(error.value))


@pytest.mark.parametrize(
    "url",
    ["https://host/@user/feed", "https://host:8080/a@b?c=d@e", "postgresql://db:5432/name", "mysql://u:p%40@db/n"],
)
def test_addresses_with_nothing_wrong_are_left_alone(url: str) -> None:
    check_port(url)
    assert without_secrets(url) == url.replace("u:p%40@", "").partition("?")[0]
