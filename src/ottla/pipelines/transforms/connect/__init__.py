"""Kafka Connect's transforms, with their names and options: one file for each."""

from __future__ import annotations

from ottla.pipelines.transforms.connect.cast import Cast
from ottla.pipelines.transforms.connect.connect_transform import ConnectTransform
from ottla.pipelines.transforms.connect.drop import Drop, DropHeaders
from ottla.pipelines.transforms.connect.extract_field import ExtractField
from ottla.pipelines.transforms.connect.filter import Filter
from ottla.pipelines.transforms.connect.flatten import Flatten
from ottla.pipelines.transforms.connect.headers import HeaderFrom, InsertHeader
from ottla.pipelines.transforms.connect.hoist_field import HoistField
from ottla.pipelines.transforms.connect.insert_field import InsertField
from ottla.pipelines.transforms.connect.mask_field import MaskField
from ottla.pipelines.transforms.connect.replace_field import ReplaceField
from ottla.pipelines.transforms.connect.routers import RegexRouter, TimestampRouter
from ottla.pipelines.transforms.connect.timestamp_converter import TimestampConverter
from ottla.pipelines.transforms.connect.value_to_key import ValueToKey

ALL: tuple[type[ConnectTransform], ...] = (
    Cast,
    Drop,
    DropHeaders,
    ExtractField,
    Filter,
    Flatten,
    HeaderFrom,
    HoistField,
    InsertField,
    InsertHeader,
    MaskField,
    RegexRouter,
    ReplaceField,
    TimestampConverter,
    TimestampRouter,
    ValueToKey,
)
CONNECT: dict[str, type[ConnectTransform]] = {transform.__name__: transform for transform in ALL}
"""The transforms by name; a name of one that works on keys and values may end with `$Key` or `$Value`."""
