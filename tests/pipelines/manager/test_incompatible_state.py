"""State that Spark finds not to fit any more."""

from __future__ import annotations

from ottla.pipelines.manager.reasons import describe_incompatible_state

VALUES = """[STREAM_FAILED] Query [id = 1] terminated with exception: [STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE] Provided value schema does not match existing state value schema.
Please check number and type of fields.
Existing value_schema=StructType(StructField(sum,DoubleType,true)) and new value_schema=StructType(StructField(sum,DecimalType(20,2),true),StructField(isEmpty,BooleanType,true)).
If you want to force running the query without schema validation, please set spark.sql.streaming.stateStore.stateSchemaCheck to false."""
OPERATORS = "[STREAMING_STATEFUL_OPERATOR_NOT_MATCH_IN_STATE_METADATA] Streaming stateful operator name does not match"


def test_the_old_and_the_new_state_are_reported() -> None:
    message = "its state was kept with the value (sum double) and would be with (sum decimal(20,2), isEmpty boolean)"
    assert describe_incompatible_state(ValueError(VALUES)) == message


def test_state_without_types_is_reported_as_other_transforms() -> None:
    assert describe_incompatible_state(ValueError(OPERATORS)) == "its state was kept by other transforms"


def test_an_error_of_another_kind_is_none_of_these() -> None:
    assert (
        describe_incompatible_state(ValueError("[STATE_STORE_INVALID_PROVIDER] The given State Store Provider")) is None
    )
    assert describe_incompatible_state(ValueError("no room")) is None
