"""The schema registry of a pipeline file, with the option names of Spark's source and sink."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from ottla.pipelines.model import Model, Scalar
from ottla.pipelines.pipeline_context import text_of
from ottla.spark.options import REGISTRY_URL

URL = "schema_registry_url"
FILES = frozenset(f"schema_registry_ssl_{name}_location" for name in ("ca", "certificate", "key"))


class RegistrySettings(Model):
    """The address of a schema registry, and the login there."""

    schema_registry_url: str | None = None
    """The schema registry of all topics, such as `http://localhost:8081`; several addresses are separated by commas. Keys
    and values with the format `avro`, `protobuf` (without `valueDescriptor`) and `json` (a source without `valueSchema`, a
    sink with `registered`) then begin with the id of their schema.
    """
    schema_registry_basic_auth_user_info: str | None = None
    """The login, `NAME:PASSWORD`."""
    schema_registry_basic_auth_credentials_source: str | None = None
    """`USER_INFO`, or `URL` if the login is part of the address."""
    schema_registry_bearer_auth_credentials_source: str | None = None
    """The source of a bearer token: `STATIC_TOKEN` or `OAUTHBEARER`."""
    schema_registry_bearer_auth_token: str | None = None
    """The token of `STATIC_TOKEN`."""
    schema_registry_bearer_auth_client_id: str | None = None
    """The client of `OAUTHBEARER`."""
    schema_registry_bearer_auth_client_secret: str | None = None
    """The secret of the client of `OAUTHBEARER`."""
    schema_registry_bearer_auth_scope: str | None = None
    """The scope of the token of `OAUTHBEARER`."""
    schema_registry_bearer_auth_issuer_endpoint_url: str | None = None
    """The address that issues tokens for `OAUTHBEARER`."""
    schema_registry_bearer_auth_logical_cluster: str | None = None
    """A header of Confluent Cloud."""
    schema_registry_bearer_auth_identity_pool_id: str | None = None
    """A header of Confluent Cloud."""
    schema_registry_ssl_ca_location: str | None = None
    """The certificates of trusted authorities, a file or a folder."""
    schema_registry_ssl_certificate_location: str | None = None
    """The client's certificate."""
    schema_registry_ssl_key_location: str | None = None
    """The key of the client's certificate."""
    schema_registry_ssl_key_password: str | None = None
    """The password of that key."""
    schema_registry_proxy: str | None = None
    """The address of an HTTP proxy."""
    schema_registry_timeout: Scalar | None = None
    """The seconds that a request may take."""
    schema_registry_max_retries: Scalar | None = None
    """The number of retries of a request."""
    schema_registry_retries_wait_ms: Scalar | None = None
    """The time before the first retry; it doubles with each."""
    schema_registry_retries_max_wait_ms: Scalar | None = None
    """The longest time before a retry."""
    schema_registry_cache_capacity: Scalar | None = None
    """The number of schemas that are kept."""

    def given_registry(self) -> dict[str, Scalar]:
        """Return the settings of the registry that are set, by their names in the file."""
        fields = RegistrySettings.model_fields
        found = {name: getattr(self, name) for name in fields}
        return {fields[name].alias or name: value for name, value in found.items() if value is not None}

    def registry_options(
        self, folder: Path, resolve: Callable[[str], str], resolve_address: Callable[[str], str]
    ) -> Mapping[str, str]:
        """Return the options of Spark's source and sink, with secrets resolved; paths are relative to `folder`."""
        fields = RegistrySettings.model_fields
        paths = {fields[name].alias for name in FILES}
        options: dict[str, str] = {}
        for option, value in self.given_registry().items():
            text = text_of(value)
            if option == REGISTRY_URL:
                options[option] = ",".join(resolve_address(one.strip()) for one in text.split(","))
            else:
                options[option] = str((folder / resolve(text)).absolute()) if option in paths else resolve(text)
        return options
