"""Schemas of Avro and Protocol Buffers that a pipeline file names are read when it is."""

from __future__ import annotations

from pathlib import Path

import pytest
from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto, FileDescriptorSet

from ottla.cli.main import main

AVRO = '{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}'
ORDER = FileDescriptorProto(name="o.proto", package="shop", message_type=[DescriptorProto(name="Order")])
DESCRIPTORS = FileDescriptorSet(file=[ORDER]).SerializeToString()
SELF = '{"type": "record", "name": "R", "fields": [{"name": "r", "type": "R"}]}'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Make valid and invalid schemas next to the pipeline file."""
    (tmp_path / "dir").mkdir()
    content = {"a.avsc": AVRO.encode(), "o.desc": DESCRIPTORS, "cut.desc": DESCRIPTORS[:9], "latin.avsc": b"{\xe9}"}
    content |= {"empty.avsc": b"", "wrong.avsc": b'{"type": "recod"}', "marked.avsc": b"\xef\xbb\xbf" + AVRO.encode()}
    for name, data in content.items():
        (tmp_path / name).write_bytes(data)
    return tmp_path


def pipeline(folder: Path, options: str, more: str = "") -> Path:
    file = folder / "p.yaml"
    text = f"pipelines:\n p:\n  source: {{type: topic, topic: t, {options}}}\n  sink: {{type: console}}\n{more}"
    file.write_text(text, encoding="utf-8")
    return file


CASES = {
    "valueFormat: avro, valueSchema: gone.avsc": "3:54: valueSchema = 'gone.avsc': cannot be read: no such file or directory; relative paths start in FOLDER",
    "keyFormat: avro, keySchema: dir": "3:52: keySchema = 'dir': cannot be read: is a directory; relative paths start in FOLDER",
    "valueFormat: avro, valueSchema: latin.avsc": "3:54: valueSchema = 'latin.avsc': it is not an Avro schema: byte 2 of the file, 0xe9, is not UTF-8; write the schema as JSON",
    "valueFormat: avro, valueSchema: empty.avsc": "3:54: valueSchema = 'empty.avsc': '' is not an Avro schema: Expecting value: line 1 column 1 (char 0)",
    "valueFormat: avro, valueSchema: '${file:wrong.avsc}'": "3:54: valueSchema = '${file:wrong.avsc}': '${file:wrong.avsc}' is not an Avro schema: there is no type {'type': 'recod'}",
    f"valueFormat: avro, valueSchema: '{SELF}'": f"3:54: valueSchema = '{SELF[:59]}…': the Avro type R cannot be a column: it contains itself",
    "valueFormat: protobuf, valueMessage: shop.Order, valueDescriptor: gone.desc": "3:84: valueDescriptor = 'gone.desc': cannot be read: no such file or directory; relative paths start in FOLDER",
    "valueFormat: protobuf, valueDescriptor: o.desc, valueMessage: shop.Ordr": "3:83: valueMessage = 'shop.Ordr': the descriptor set has no message 'shop.Ordr'; its messages are: shop.Order; did you mean 'shop.Order'?",
}


@pytest.mark.parametrize("options", CASES)
def test_a_schema_that_is_none_is_refused_with_its_place(
    options: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = pipeline(folder, options)
    assert main(["pipeline", "validate", str(file)]) == 1
    assert capsys.readouterr().err.splitlines() == [f"{file}:{CASES[options].replace('FOLDER', str(folder))}"]


def test_a_descriptor_set_that_is_cut_off_is_a_mistake_of_the_file(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = pipeline(folder, "keyFormat: protobuf, keyDescriptor: cut.desc, keyMessage: shop.Order")
    assert main(["pipeline", "validate", str(file)]) == 1
    stderr = capsys.readouterr().err
    assert stderr.startswith(f"{file}:3:56: keyDescriptor = 'cut.desc': the descriptor set cannot be read: ")
    assert "make it with `protoc --include_imports -o file.desc`" in stderr


def test_another_input_is_checked_too_and_messages_contain_no_secret(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WHERE", str(folder / "hidden.avsc"))
    more = "  inputs:\n   more: {type: topic, topic: u, valueFormat: avro, valueSchema: '${env:WHERE}'}\n"
    file = pipeline(folder, "valueFormat: avro, valueSchema: a.avsc", more)
    assert main(["pipeline", "validate", str(file)]) == 1
    stderr = capsys.readouterr().err
    assert stderr.startswith(f"{file}:6:53: valueSchema = '${{env:WHERE}}': cannot be read: no such file")
    assert "hidden" not in stderr


@pytest.mark.parametrize(
    "options",
    [
        "keyFormat: avro, keySchema: a.avsc, valueFormat: avro, valueSchema: marked.avsc",
        f"valueFormat: avro, valueSchema: '{AVRO}'",
        "valueFormat: avro, valueSchema: '${file:a.avsc}'",
        "valueFormat: protobuf, valueDescriptor: o.desc, valueMessage: shop.Order",
    ],
)
def test_good_ones_are_no_mistakes(options: str, folder: Path) -> None:
    assert main(["pipeline", "validate", str(pipeline(folder, options))]) == 0
