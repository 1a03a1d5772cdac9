"""The settings of the clients as keywords, for type checkers and editors: `Consumer(**settings: Unpack[ConsumerSettings])`.

Written by `make settings` from the config classes (`common_config.py`, and `config.py` of each client), which document the
settings and accept other forms as well, such as text for a number.
"""

# Annotations are not postponed: a type checker at run time reads these faster than text.
from collections.abc import Callable, Iterable
from typing import Any, Literal, TypedDict


class CommonSettings(TypedDict, total=False):
    """Settings of all clients."""

    security_protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
    ssl_truststore_location: str | None
    ssl_truststore_certificates: str | None
    ssl_truststore_type: Literal["PEM", "PKCS12", "JKS"] | None
    ssl_truststore_password: str | None
    ssl_keystore_location: str | None
    ssl_keystore_certificate_chain: str | None
    ssl_keystore_key: str | None
    ssl_keystore_type: Literal["PEM", "PKCS12", "JKS"] | None
    ssl_keystore_password: str | None
    ssl_key_password: str | None
    ssl_certificate_location: str | None
    ssl_key_location: str | None
    ssl_endpoint_identification_algorithm: Literal["https", "none", ""]
    ssl_enabled_protocols: str | Iterable[Literal["TLSv1.2", "TLSv1.3"]]
    ssl_protocol: Literal["TLSv1.3", "TLSv1.2", "TLS"]
    ssl_cipher_suites: str | Iterable[str]
    sasl_mechanism: str | None
    sasl_username: str | None
    sasl_password: str | None
    sasl_jaas_config: str | None
    sasl_kerberos_service_name: str | None
    sasl_kerberos_principal: str | None
    sasl_kerberos_keytab: str | None
    sasl_kerberos_ticket_renew_window_factor: float
    sasl_kerberos_ticket_renew_jitter: float
    sasl_kerberos_min_time_before_relogin: int
    sasl_kerberos_kinit_cmd: str | None
    sasl_oauth_token_provider: Any
    sasl_oauthbearer_token_file: str | None
    sasl_oauthbearer_token_endpoint_url: str | None
    sasl_oauthbearer_client_credentials_client_id: str | None
    sasl_oauthbearer_client_credentials_client_secret: str | None
    sasl_oauthbearer_scope: str | None
    sasl_oauthbearer_header_urlencode: bool
    sasl_oauthbearer_extensions: str | None
    sasl_oauthbearer_method: Literal["default", "oidc"] | None
    https_ca_location: str | None
    sasl_login_callback_handler_class: str | None
    sasl_login_connect_timeout_ms: int
    sasl_login_read_timeout_ms: int
    sasl_login_retry_backoff_ms: int
    sasl_login_retry_backoff_max_ms: int
    sasl_login_refresh_window_factor: float
    sasl_login_refresh_window_jitter: float
    sasl_login_refresh_min_period_seconds: int
    sasl_login_refresh_buffer_seconds: int
    bootstrap_servers: str | Iterable[str]
    client_id: str
    request_timeout_ms: int
    retry_backoff_ms: int
    retry_backoff_max_ms: int
    reconnect_backoff_ms: int
    reconnect_backoff_max_ms: int
    bootstrap_refused_timeout_ms: int
    bootstrap_resolve_timeout_ms: int
    metadata_max_age_ms: int
    metadata_recovery_strategy: Literal["rebootstrap", "none"]
    metadata_cluster_check_enable: bool
    metadata_recovery_rebootstrap_trigger_ms: int
    connections_max_idle_ms: int
    socket_connection_setup_timeout_ms: int
    socket_connection_setup_timeout_max_ms: int
    client_dns_lookup: Literal["use_all_dns_ips", "resolve_canonical_bootstrap_servers_only"]
    send_buffer_bytes: int
    receive_buffer_bytes: int
    enable_metrics_push: bool
    auto_include_jmx_reporter: bool
    metrics_num_samples: int
    metrics_sample_window_ms: int
    metrics_recording_level: Literal["INFO", "DEBUG", "TRACE"]
    metric_reporters: Literal["", "org.apache.kafka.common.metrics.JmxReporter"]


class ProducerSettings(CommonSettings, total=False):
    """Settings of a producer."""

    acks: Literal["all", "0", "1", 0, 1, "-1", -1]
    batch_size: int
    linger_ms: int
    buffer_memory: int
    buffer_memory_allocation_strategy: Literal["full", "incremental"]
    max_block_ms: int
    max_request_size: int
    max_in_flight_requests_per_connection: int
    compression_type: Literal["none", "gzip", "snappy", "lz4", "zstd"]
    compression_gzip_level: int | None
    compression_lz4_level: int | None
    compression_zstd_level: int | None
    retries: int
    delivery_timeout_ms: int
    enable_idempotence: bool
    transactional_id: str | None
    transaction_timeout_ms: int
    interceptor_classes: str | Iterable[Any]
    partitioner_class: Any
    partitioner_ignore_keys: bool
    partitioner_adaptive_partitioning_enable: bool
    client_rack: str
    partitioner_rack_aware: bool
    key_serializer: Callable[[Any], bytes | None] | None
    value_serializer: Callable[[Any], bytes | None] | None
    metadata_max_idle_ms: int
    statistics_interval_ms: int
    on_statistics: Callable[[Any], Any] | None


class PlainConsumerSettings(CommonSettings, total=False):
    """Settings of a consumer except its deserializers."""

    group_id: str | None
    group_protocol: Literal["classic", "consumer"]
    group_remote_assignor: str | None
    group_instance_id: str | None
    session_timeout_ms: int
    heartbeat_interval_ms: int
    max_poll_interval_ms: int
    partition_assignment_strategy: str | Iterable[Any]
    interceptor_classes: str | Iterable[Any]
    enable_auto_commit: bool
    auto_commit_interval_ms: int
    exclude_internal_topics: bool
    internal_leave_group_on_close: bool
    auto_offset_reset: Literal["latest", "earliest", "none"]
    fetch_min_bytes: int
    fetch_max_wait_ms: int
    fetch_max_bytes: int
    max_partition_fetch_bytes: int
    max_poll_records: int
    client_rack: str
    check_crcs: bool
    default_api_timeout_ms: int
    allow_auto_create_topics: bool
    isolation_level: Literal["read_uncommitted", "read_committed"]
    statistics_interval_ms: int
    on_statistics: Callable[[Any], Any] | None


class ConsumerSettings(PlainConsumerSettings, total=False):
    """Settings of a consumer."""

    key_deserializer: Callable[[bytes], Any] | None
    value_deserializer: Callable[[bytes], Any] | None


class PlainShareConsumerSettings(CommonSettings, total=False):
    """Settings of a share consumer except its deserializers."""

    group_id: str | None
    share_acknowledgement_mode: Literal["implicit", "explicit"]
    share_acquire_mode: Literal["batch_optimized", "record_limit"]
    max_poll_records: int
    max_poll_interval_ms: int
    fetch_min_bytes: int
    fetch_max_wait_ms: int
    fetch_max_bytes: int
    client_rack: str
    check_crcs: bool
    default_api_timeout_ms: int
    allow_auto_create_topics: bool
    statistics_interval_ms: int
    on_statistics: Callable[[Any], Any] | None


class ShareConsumerSettings(PlainShareConsumerSettings, total=False):
    """Settings of a share consumer."""

    key_deserializer: Callable[[bytes], Any] | None
    value_deserializer: Callable[[bytes], Any] | None


class AdminSettings(CommonSettings, total=False):
    """Settings of an admin."""

    default_api_timeout_ms: int
