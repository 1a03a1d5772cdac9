"""Options: the official connector's names and refusals, each wrong one a sentence."""

from __future__ import annotations

import pytest

from ottla.config import Password
from ottla.errors import ConfigError
from ottla.spark.options import SinkOptions, SourceOptions, read_sink_options, read_source_options, spelling

SERVERS = {"kafka.bootstrap.servers": "localhost:9092"}


def source(**options: str) -> SourceOptions:
    return read_source_options(SERVERS | options)


def test_names_are_read_in_any_case() -> None:
    options = source(SUBSCRIBE="a, b", startingoffsets="earliest", maxOffsetsPerTrigger="7", includeheaders="true")
    assert options.subscribe == ("a", "b")
    assert options.starting_offsets == "earliest"
    assert options.max_offsets_per_trigger == 7
    assert options.include_headers


def test_client_settings_are_passed_to_the_client_without_their_prefix() -> None:
    assert source(subscribe="a", **{"kafka.fetch.min.bytes": "9"}).kafka == {
        "bootstrap.servers": "localhost:9092",
        "fetch.min.bytes": "9",
    }


def test_every_option_has_prose_and_the_official_spelling() -> None:
    assert spelling("starting_offsets_by_timestamp_strategy") == "startingOffsetsByTimestampStrategy"
    assert spelling("poll_timeout_ms") == "kafkaConsumer.pollTimeoutMs"
    from ottla.config import options_of

    assert all(option.doc for cls in (SourceOptions, SinkOptions) for option in options_of(cls))


def test_options_that_spark_adds_are_known() -> None:
    options = read_sink_options(SERVERS | {"checkpointlocation": "/tmp/c", "queryname": "q", "topic": "t"})
    assert options.topic == "t"


def test_a_table_has_the_options_of_source_and_sink_and_what_a_catalog_adds() -> None:
    given = SERVERS | {"subscribe": "a", "topic": "b", "includeheaders": "false"}
    table = given | {f"option.{name}": text for name, text in given.items()} | {"provider": "ottla", "owner": "me"}
    assert read_source_options(table).subscribe == ("a",)
    assert read_sink_options(table).topic == "b"
    for name in ("colour", "option.colour"):
        with pytest.raises(ConfigError, match=f"unknown option '{name}'"):
            read_source_options(table | {name: "red"})
    with pytest.raises(ConfigError, match="unknown option 'topic'"):
        read_source_options(given)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"startingoffset": "earliest"}, "unknown option 'startingoffset'; did you mean 'startingOffsets'?"),
        ({"bootstrap.servers": "x:1"}, "unknown option 'bootstrap.servers'; did you mean 'kafka.bootstrap.servers'?"),
        ({"colour": "red"}, "unknown option 'colour'"),
        ({"assign": '{"a":[0]}'}, "options subscribe and assign exclude each other: give only one of them"),
        ({"subscribe": " , "}, "option subscribe is empty; give a topic"),
        ({"maxOffsetsPerTrigger": "0"}, "maxOffsetsPerTrigger = 0: must be at least 1"),
        ({"minPartitions": "many"}, "minPartitions = 'many': must be a whole number"),
        ({"failOnDataLoss": "perhaps"}, "failOnDataLoss = 'perhaps': must be true or false"),
        ({"kafka.bootstrap.servers": ""}, "option kafka.bootstrap.servers is required, for example localhost:9092"),
        ({"kafka.auto.offset.reset": "earliest"}, "option kafka.auto.offset.reset is not allowed: use the option"),
        ({"kafka.enable.auto.commit": "true"}, "option kafka.enable.auto.commit is not allowed: Spark keeps"),
        ({"kafka.value.deserializer": "x"}, "option kafka.value.deserializer is not allowed: values are read as bytes"),
        ({"kafka.interceptor.classes": "x"}, "option kafka.interceptor.classes is not allowed: an interceptor"),
        (
            {"schemaRegistryUrl": "http://a"},
            "option schemaRegistryUrl is only used for the formats avro, json without valueSchema",
        ),
        (
            {"schemaRegistryBasicAuthUser": "a:b"},
            "unknown option 'schemaRegistryBasicAuthUser'; did you mean 'schemaRegistryBasicAuthUserInfo'?",
        ),
        ({"schemaRegistryBasicAuthUserInfo": "a:b"}, "option schemaRegistryBasicAuthUserInfo needs schemaRegistryUrl"),
        ({"valueSchemaVersion": "1"}, "option valueSchemaVersion needs schemaRegistryUrl and valueFormat = avro"),
        (
            {"keySubject": "a", "valueFormat": "avro", "schemaRegistryUrl": "http://a"},
            "option keySubject needs schemaRegistryUrl and keyFormat",
        ),
        (
            {"valueSchema": "{}", "valueSchemaVersion": "1", "valueFormat": "avro", "schemaRegistryUrl": "http://a"},
            "options valueSchemaVersion and valueSchema exclude each other: give only one of them",
        ),
    ],
)
def test_a_wrong_source_option_is_a_one_line_error(options: dict[str, str], sentence: str) -> None:
    with pytest.raises(ConfigError) as error:
        source(**{"subscribe": "a"} | options)
    assert str(error.value).startswith(sentence)
    assert "\n" not in str(error.value)


def test_without_options_a_table_whose_options_spark_does_not_pass_on_is_assumed() -> None:
    for given in ({}, {"provider": "ottla"}):
        with pytest.raises(ConfigError, match=r"there are no options: .* createOrReplaceTempView"):
            read_source_options(given)


def test_something_must_be_subscribed() -> None:
    with pytest.raises(ConfigError, match="one of the options subscribe, subscribePattern, assign is required"):
        source()


def test_a_wrong_sink_option_is_a_one_line_error() -> None:
    with pytest.raises(ConfigError, match=r"^unknown option 'topics'; did you mean 'topic'\?$"):
        read_sink_options(SERVERS | {"topics": "a"})


def test_secrets_of_the_client_are_not_shown_and_names_of_librdkafka_are_understood() -> None:
    options = read_source_options(
        {
            "subscribe": "t",
            "kafka.bootstrap.servers": "a:1",
            "kafka.sasl.password": "s3cr3t",
            "kafka.ssl.ca.location": "/ca",
        }
    )
    assert "s3cr3t" not in repr(options)
    assert options.kafka["ssl.truststore.location"] == "/ca"
    assert options.kafka["sasl.password"] == Password("s3cr3t")


@pytest.mark.parametrize("name", ["schemaRegistryBearerAuthToken", "schema.registry.bearer.auth.token"])
def test_settings_of_a_registry_have_two_spellings_and_are_not_shown(name: str) -> None:
    options = source(subscribe="t", valueFormat="avro", schemaRegistryUrl="http://a:1", **{name: "s3cr3t"})
    assert options.registry == {"url": Password("http://a:1"), "bearer.auth.token": Password("s3cr3t")}
    assert "s3cr3t" not in repr(options) + repr(options.registry)
