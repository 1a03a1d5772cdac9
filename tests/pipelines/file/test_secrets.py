"""Secrets are used and never printed."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.errors import ConfigError
from ottla.pipelines.secrets import Secrets
from ottla.pipelines.sinks.spark import SparkSink
from tests.pipelines.file.files import mistakes, pipeline, read

SINK = "{type: spark, format: jdbc, options: {password: '${env:PASSWORD}'}}"


def test_a_model_keeps_the_placeholder_and_prints_no_secret() -> None:
    (one,) = read(pipeline(sink=SINK), PASSWORD="open sesame")
    assert isinstance(one.model.sink, SparkSink)
    assert one.secrets.resolve(str(one.model.sink.options["password"])) == "open sesame"
    assert "sesame" not in repr(one) + str(one.model) + repr(one.secrets) + one.model.model_dump_json()


def test_a_mistake_beside_a_secret_does_not_tell_it() -> None:
    text = pipeline(sink=SINK.replace("format: jdbc", "format: 1"))
    assert "sesame" not in "".join(mistakes(text, PASSWORD="open sesame"))


def test_what_others_say_of_a_secret_is_hidden_again(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("hush\n", encoding="utf-8")
    secrets = Secrets({"USER": "jane"}, tmp_path)
    assert secrets.resolve("${env:USER}:${file:token}@host") == "jane:hush@host"
    assert secrets.hidden("cannot log in as jane with hush") == "cannot log in as ${env:USER} with ${file:token}"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("${env:NOPE}", "there is no variable 'NOPE' in the environment; set it"),
        ("${file:nope}", "the file 'nope' cannot be read: No such file or directory"),
        ("${vault:NOPE}", "unknown kind of secret 'vault'; there are env and file"),
        ("${evn:NOPE}", "unknown kind of secret 'evn'; did you mean 'env'?"),
    ],
)
def test_a_secret_that_is_not_there_is_told(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(ConfigError) as error:
        Secrets({}, tmp_path).resolve(text)
    assert told in str(error.value)


def test_what_only_looks_like_a_secret_stays() -> None:
    assert Secrets({}, Path()).resolve("a $1 ${name} $env:X") == "a $1 ${name} $env:X"
