"""DescribeConfigs: the configs of topics, brokers and groups, with their sources."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.protocol.schema import Bool, Int8, Int16, Int32, Message, String, message, since, struct


@struct
class DescribeConfigsResource:
    resource_type: Int8 = 0
    """2 a topic, 4 a broker, 8 a broker's loggers, 16 client metrics, 32 a group."""
    resource_name: String = ""
    configuration_keys: Sequence[String] | None = None
    """None requests every config."""


@message(key=32, versions="1-4", flexible="4+")
class DescribeConfigsRequest(Message):
    resources: Sequence[DescribeConfigsResource] = ()
    include_synonyms: Bool = False
    include_documentation: Bool = since(3, default=False)


@struct
class DescribeConfigsSynonym:
    """A source that defines this config; the effective one is first."""

    name: String = ""
    value: String | None = None
    source: Int8 = 0
    """Numbers as for `config_source`."""


@struct
class DescribeConfigsResourceResult:
    name: String = ""
    value: String | None = None
    """None for a secret."""
    read_only: Bool = False
    config_source: Int8 = -1
    """1 topic, 2 this broker, 3 all brokers, 4 the broker's file, 5 default, 6 loggers, 7 client metrics, 8 group."""
    is_sensitive: Bool = False
    synonyms: Sequence[DescribeConfigsSynonym] = ()
    config_type: Int8 = since(3, default=0, ignorable=True)
    """1 boolean, 2 string, 3 int, 4 short, 5 long, 6 double, 7 list, 8 class, 9 password."""
    documentation: String | None = since(3, default=None, ignorable=True)


@struct
class DescribeConfigsResult:
    error_code: Int16 = 0
    error_message: String | None = None
    resource_type: Int8 = 0
    resource_name: String = ""
    configs: Sequence[DescribeConfigsResourceResult] = ()


@message(key=32, versions="1-4", flexible="4+")
class DescribeConfigsResponse(Message):
    throttle_time_ms: Int32 = 0
    results: Sequence[DescribeConfigsResult] = ()
