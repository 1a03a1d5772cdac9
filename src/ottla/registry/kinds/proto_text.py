"""The text of `.proto` files: read into a FileDescriptorProto, and written from one.

The reader knows the syntax alone (proto2, proto3). Names, numbers and types are checked by protobuf's own
DescriptorPool, to which the result is given. Comments are not kept. Options with a parenthesized name are kept as
uninterpreted options.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from ottla.extras import extra
from ottla.registry.errors import InvalidSchemaError, SchemaLimitError

with extra("registry"):
    from google.protobuf import descriptor_pb2 as pb

MOST_NESTED = 64
TOKEN = re.compile(
    r"""\s+|//[^\n]*|/\*.*?\*/
    |(?P<string>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
    |(?P<name>\.?[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)
    |(?P<number>0[xX][0-9a-fA-F]+|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)
    |(?P<mark>[{}()\[\]<>=;,:+\-/])""",
    re.VERBOSE | re.DOTALL,
)
ESCAPE = re.compile(r"\\(?:([0-7]{1,3})|[xX]([0-9a-fA-F]{1,2})|(.))", re.DOTALL)
ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
Field = pb.FieldDescriptorProto
SCALARS = {
    name: getattr(Field, f"TYPE_{name.upper()}")
    for name in ("double", "float", "int64", "uint64", "int32", "fixed64", "fixed32", "bool", "string", "bytes", "uint32",
                 "sfixed32", "sfixed64", "sint32", "sint64")
}  # fmt: skip
SCALAR_NAMES = {number: name for name, number in SCALARS.items()}
LABELS = {
    "optional": Field.LABEL_OPTIONAL,
    "repeated": Field.LABEL_REPEATED,
    "required": Field.LABEL_REQUIRED,
}
HIGHEST_FIELD = 536_870_912
HIGHEST_ENUM = (1 << 31) - 1


def read_proto(text: str, name: str) -> Any:
    """Return the FileDescriptorProto of a text; raise InvalidSchemaError with the line of a mistake."""
    reader = Reader(text)
    try:
        return reader.read_file(name)
    except (ValueError, OverflowError) as error:  # a number that its field cannot hold
        raise reader.fail(str(error)) from None


class Reader:
    """A recursive descent over the tokens of a text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = list(self._split())
        self._next = 0
        self._depth = 0
        self._is_proto3 = False

    def _split(self) -> Iterator[tuple[str, str, int]]:
        position = 0
        while position < len(self._text):
            match = TOKEN.match(self._text, position)
            if match is None:
                raise self.fail(f"unexpected character {self._text[position]!r}", position)
            if match.lastgroup is not None:
                yield match.lastgroup, match.group(), position
            position = match.end()
        yield "end", "end of the text", position

    def fail(self, reason: str, position: int | None = None) -> InvalidSchemaError:
        """Return the error for the present token, or for a position."""
        at = self._tokens[self._next][2] if position is None else position
        return InvalidSchemaError(f"line {self._text.count(chr(10), 0, at) + 1}: {reason}")

    @property
    def _token(self) -> str:
        return self._tokens[self._next][1]

    def _take(self) -> str:
        token = self._token
        if self._next < len(self._tokens) - 1:
            self._next += 1
        return token

    def _takes(self, token: str) -> bool:
        if self._token != token or self._tokens[self._next][0] == "string":
            return False
        self._take()
        return True

    def _expect(self, token: str) -> None:
        if not self._takes(token):
            raise self.fail(f"expected {token!r}, got {self._token[:40]!r}")

    def _take_kind(self, kind: str) -> str:
        if self._tokens[self._next][0] != kind:
            raise self.fail(f"expected a {kind}, got {self._token[:40]!r}")
        return self._take()

    def _take_string(self) -> str:
        text = unescape(self._take_kind("string"))
        while self._tokens[self._next][0] == "string":
            text += unescape(self._take())
        return text

    def _take_integer(self) -> int:
        sign = -1 if self._takes("-") else 1
        text = self._take_kind("number")
        try:
            return sign * (int(text, 8) if len(text) > 1 and text[0] == "0" and text.isdecimal() else int(text, 0))
        except ValueError:
            raise self.fail(f"expected a whole number, got {text!r}") from None

    def read_file(self, name: str) -> Any:
        """Read the whole text."""
        file = pb.FileDescriptorProto(name=name)
        if self._takes("syntax"):
            self._expect("=")
            syntax = self._take_string()
            if syntax not in ("proto2", "proto3"):
                raise self.fail(f"invalid syntax {syntax!r}: expected proto2 or proto3")
            self._is_proto3 = syntax == "proto3"
            if self._is_proto3:
                file.syntax = syntax
            self._expect(";")
        elif self._token == "edition":
            raise self.fail("editions are not supported: use syntax proto3")
        readers: dict[str, Callable[[], None]] = {
            "package": lambda: self._read_package(file),
            "import": lambda: self._read_import(file),
            "option": lambda: self._read_option(file.options),
            "message": lambda: self._read_message(file.message_type.add()),
            "enum": lambda: self._read_enum(file.enum_type.add()),
            "extend": lambda: self._read_extend(file, file),
            "service": lambda: self._read_service(file.service.add()),
        }
        while self._tokens[self._next][0] != "end":
            if self._takes(";"):
                continue
            read = readers.get(self._token)
            if read is None:
                raise self.fail(f"expected {', '.join(readers)}, got {self._token[:40]!r}")
            self._take()
            read()
        return file

    def _read_package(self, file: Any) -> None:
        file.package = self._take_kind("name")
        self._expect(";")

    def _read_import(self, file: Any) -> None:
        if self._takes("public"):
            file.public_dependency.append(len(file.dependency))
        elif self._takes("weak"):
            file.weak_dependency.append(len(file.dependency))
        file.dependency.append(self._take_string())
        self._expect(";")

    def _enter(self) -> None:
        self._depth += 1
        if self._depth > MOST_NESTED:
            raise SchemaLimitError(f"messages or options are nested deeper than {MOST_NESTED}")

    def _read_message(self, message: Any) -> None:
        message.name = self._take_kind("name")
        self._read_body(message)

    def _read_body(self, message: Any) -> None:
        self._enter()
        self._expect("{")
        readers: dict[str, Callable[[], None]] = {
            "message": lambda: self._read_message(message.nested_type.add()),
            "enum": lambda: self._read_enum(message.enum_type.add()),
            "extend": lambda: self._read_extend(message, message),
            "option": lambda: self._read_option(message.options),
            "oneof": lambda: self._read_oneof(message),
            "reserved": lambda: self._read_reserved(message, HIGHEST_FIELD),
            "extensions": lambda: self._read_extensions(message),
        }
        while not self._takes("}"):
            if self._takes(";"):
                continue
            read = readers.get(self._token)
            if read is not None and self._is_keyword():
                self._take()
                read()
            else:
                self._read_field(message, message.field)
        self._add_synthetic_oneofs(message)
        self._depth -= 1

    def _is_keyword(self) -> bool:
        """Return True unless the token is the type of a field, as in `message message = 1`."""
        following = self._tokens[self._next + 1 : self._next + 3]
        return len(following) < 2 or following[1][1] != "=" or self._token == "option"

    def _read_field(self, message: Any, fields: Any, oneof: int | None = None) -> None:
        field = fields.add()
        label = self._token if self._token in LABELS and oneof is None else None
        if label is not None:
            self._take()
        field.label = LABELS[label or "optional"]
        if label is None and oneof is None and not self._is_proto3 and self._token != "map":
            raise self.fail(f"expected optional, required or repeated before {self._token[:40]!r}, because of proto2")
        if oneof is not None:
            field.oneof_index = oneof
        kind = self._take_kind("name")
        if kind == "map" and self._takes("<"):
            self._read_map(message, field)
        elif kind == "group":
            self._read_group(message, field)
            return
        else:
            set_type(field, kind)
            field.name = self._take_kind("name")
            self._expect("=")
            field.number = self._take_integer()
        field.proto3_optional = self._is_proto3 and label == "optional"
        if not field.proto3_optional:
            field.ClearField("proto3_optional")
        self._read_field_options(field)
        self._expect(";")

    def _read_map(self, message: Any, field: Any) -> None:
        key = self._take_kind("name")
        self._expect(",")
        value = self._take_kind("name")
        self._expect(">")
        field.name = self._take_kind("name")
        self._expect("=")
        field.number = self._take_integer()
        entry = message.nested_type.add(name=entry_name(field.name))
        entry.options.map_entry = True
        for number, (name, kind) in enumerate((("key", key), ("value", value)), 1):
            part = entry.field.add(name=name, number=number, label=Field.LABEL_OPTIONAL)
            set_type(part, kind)
        field.label = Field.LABEL_REPEATED
        field.type = Field.TYPE_MESSAGE
        field.type_name = entry.name

    def _read_group(self, message: Any, field: Any) -> None:
        name = self._take_kind("name")
        self._expect("=")
        field.number = self._take_integer()
        field.name, field.type, field.type_name = name.lower(), Field.TYPE_GROUP, name
        self._read_field_options(field)
        self._read_body(message.nested_type.add(name=name))

    def _read_oneof(self, message: Any) -> None:
        index = len(message.oneof_decl)
        oneof = message.oneof_decl.add(name=self._take_kind("name"))
        self._expect("{")
        while not self._takes("}"):
            if self._takes(";"):
                continue
            if self._token == "option" and self._is_keyword():
                self._take()
                self._read_option(oneof.options)
            else:
                self._read_field(message, message.field, index)

    def _add_synthetic_oneofs(self, message: Any) -> None:
        for field in message.field:
            if field.proto3_optional:
                field.oneof_index = len(message.oneof_decl)
                message.oneof_decl.add(name=f"_{field.name}")

    def _read_enum(self, enum: Any) -> None:
        enum.name = self._take_kind("name")
        self._expect("{")
        while not self._takes("}"):
            if self._takes(";"):
                continue
            following = self._tokens[self._next + 1][1]
            if self._token == "option" and following != "=":
                self._take()
                self._read_option(enum.options)
            elif self._token == "reserved" and following != "=":
                self._take()
                self._read_reserved(enum, HIGHEST_ENUM)
            else:
                value = enum.value.add(name=self._take_kind("name"))
                self._expect("=")
                value.number = self._take_integer()
                if self._takes("["):
                    self._read_options(value.options)
                self._expect(";")

    def _read_reserved(self, owner: Any, highest: int) -> None:
        while True:
            if self._tokens[self._next][0] == "string":
                owner.reserved_name.append(self._take_string())
            else:
                start, end = self._read_range(highest)
                owner.reserved_range.add(start=start, end=end + (highest == HIGHEST_FIELD and end != highest))
            if not self._takes(","):
                break
        self._expect(";")

    def _read_range(self, highest: int) -> tuple[int, int]:
        start = self._take_integer()
        if not self._takes("to"):
            return start, start
        return start, highest if self._takes("max") else self._take_integer()

    def _read_extensions(self, message: Any) -> None:
        while True:
            start, end = self._read_range(HIGHEST_FIELD)
            message.extension_range.add(start=start, end=end + (end != HIGHEST_FIELD))
            if not self._takes(","):
                break
        if self._takes("["):
            self._read_options(message.extension_range[-1].options)
        self._expect(";")

    def _read_extend(self, owner: Any, message: Any) -> None:
        extendee = self._take_kind("name")
        self._expect("{")
        while not self._takes("}"):
            if self._takes(";"):
                continue
            self._read_field(message, owner.extension)
            owner.extension[-1].extendee = extendee

    def _read_service(self, service: Any) -> None:
        service.name = self._take_kind("name")
        self._expect("{")
        while not self._takes("}"):
            if self._takes(";"):
                continue
            if self._takes("option"):
                self._read_option(service.options)
                continue
            self._expect("rpc")
            method = service.method.add(name=self._take_kind("name"))
            method.input_type, streams = self._read_parameter()
            if streams:
                method.client_streaming = True
            self._expect("returns")
            method.output_type, streams = self._read_parameter()
            if streams:
                method.server_streaming = True
            if self._takes("{"):
                while not self._takes("}"):
                    if not self._takes(";"):
                        self._expect("option")
                        self._read_option(method.options)
            else:
                self._expect(";")

    def _read_parameter(self) -> tuple[str, bool]:
        self._expect("(")
        streams = self._token == "stream" and self._tokens[self._next + 1][1] != ")"
        if streams:
            self._take()
        name = self._take_kind("name")
        self._expect(")")
        return name, streams

    # Options

    def _read_field_options(self, field: Any) -> None:
        if not self._takes("["):
            return
        while True:
            if self._token in ("default", "json_name") and self._tokens[self._next + 1][1] == "=":
                name = self._take()
                self._expect("=")
                value = self._take_value()
                setattr(field, f"{name}_value" if name == "default" else name, default_text(value))
            else:
                self._read_one_option(field.options)
            if not self._takes(","):
                break
        self._expect("]")

    def _read_options(self, options: Any) -> None:
        while True:
            self._read_one_option(options)
            if not self._takes(","):
                break
        self._expect("]")

    def _read_option(self, options: Any) -> None:
        self._read_one_option(options)
        self._expect(";")

    def _read_one_option(self, options: Any) -> None:
        parts: list[tuple[str, bool]] = []
        while self._token != "=":
            if self._takes("("):
                parts.append((self._take_kind("name"), True))
                self._expect(")")
            else:
                name = self._take_kind("name")
                parts += [(each, False) for each in name.strip(".").split(".")]
        self._expect("=")
        value = self._take_value()
        if not parts:
            raise self.fail("an option needs a name")
        name, is_extension = parts[0]
        known = None if is_extension or len(parts) > 1 else options.DESCRIPTOR.fields_by_name.get(name)
        if known is None or known.name == "uninterpreted_option" or known.message_type is not None:
            store_uninterpreted(options, parts, value)
            return
        try:
            setattr(options, name, option_value(known, value))
        except (TypeError, ValueError, KeyError):
            raise self.fail(f"invalid value {value[1]!r} for option {name}") from None

    def _take_value(self) -> tuple[str, Any]:
        """Return the kind and the value of a constant."""
        kind, token, start = self._tokens[self._next]
        if kind == "string":
            return "string", self._take_string()
        if token == "{":
            self._skip_braces()
            return "aggregate", self._text[start + 1 : self._tokens[self._next - 1][2]].strip()
        sign = self._take() if token in "+-" else ""
        if self._tokens[self._next][0] not in ("name", "number"):
            raise self.fail(f"expected a value, got {self._token[:40]!r}")
        kind = "number" if sign else self._tokens[self._next][0]
        return kind, ("-" if sign == "-" else "") + self._take()

    def _skip_braces(self) -> None:
        depth = 0
        while True:
            token = self._take()
            depth += (token == "{") - (token == "}")
            if depth == 0:
                return
            if self._tokens[self._next][0] == "end":
                raise self.fail("expected '}', got the end of the text")


def set_type(field: Any, kind: str) -> None:
    """Set the type of a field: a scalar, or the name of a type that is resolved later."""
    if kind in SCALARS:
        field.type = SCALARS[kind]
    else:
        field.type_name = kind


def entry_name(name: str) -> str:
    """Return the name of the message for the entries of a map field."""
    return "".join(each[:1].upper() + each[1:] for each in name.split("_")) + "Entry"


def unescape(token: str) -> str:
    """Return the text of a string token."""

    def replace(match: re.Match[str]) -> str:
        octal, hexadecimal, other = match.groups()
        if octal or hexadecimal:
            return chr(int(octal, 8) if octal else int(hexadecimal, 16))
        return ESCAPES.get(other, other)

    return ESCAPE.sub(replace, token[1:-1])


def default_text(value: tuple[str, Any]) -> str:
    """Return a default as it is in a descriptor."""
    return str(value[1])


def option_value(known: Any, value: tuple[str, Any]) -> Any:
    """Return the value of an option in the type that its field has."""
    kind, given = value
    if known.enum_type is not None:
        return known.enum_type.values_by_name[given].number
    if known.type == Field.TYPE_BOOL:
        return {"true": True, "false": False}[given]
    if known.type == Field.TYPE_STRING:
        if kind != "string":
            raise ValueError
        return given
    return int(given, 0)


def store_uninterpreted(options: Any, parts: list[tuple[str, bool]], value: tuple[str, Any]) -> None:
    """Store an option that only its author's tools understand."""
    option = options.uninterpreted_option.add()
    for name, is_extension in parts:
        option.name.add(name_part=name, is_extension=is_extension)
    kind, given = value
    if kind == "string":
        option.string_value = given.encode("utf-8", "surrogateescape")
    elif kind == "aggregate":
        option.aggregate_value = given
    elif kind == "name":
        option.identifier_value = given
    elif re.fullmatch(r"-?\d+|-?0[xX][0-9a-fA-F]+", given):
        number = int(given, 0) if not given.lstrip("-").startswith("0") or "x" in given.lower() else int(given, 8)
        if number < 0:
            option.negative_int_value = number
        else:
            option.positive_int_value = number
    else:
        option.double_value = float(given)


# Writing


def write_proto(file: Any) -> str:
    """Return the text of a file in a fixed layout."""
    sections = [[f'syntax = "{file.syntax or "proto2"}";'] + ([f"package {file.package};"] if file.package else [])]
    public, weak = set(file.public_dependency), set(file.weak_dependency)
    sections.append(
        [
            f"import {'public ' if position in public else 'weak ' if position in weak else ''}{quote(each)};"
            for position, each in enumerate(file.dependency)
        ]
    )
    sections.append([f"option {each};" for each in option_texts(file.options)])
    sections += [write_message(each, file.syntax == "proto3") for each in file.message_type]
    sections += [write_enum(each) for each in file.enum_type]
    sections += write_extensions(file.extension, file.syntax == "proto3")
    sections += [write_service(each) for each in file.service]
    return "\n\n".join("\n".join(each) for each in sections if each) + "\n"


def indent(lines: list[str]) -> list[str]:
    return [f"  {each}" if each else each for each in lines]


def write_message(message: Any, is_proto3: bool, head: str = "") -> list[str]:
    """Return the lines of a message: reserved, options, fields, oneofs, extensions, nested types."""
    entries = {each.name: each for each in message.nested_type if each.options.map_entry}
    groups = {each.type_name.rpartition(".")[2] for each in message.field if each.type == Field.TYPE_GROUP}
    nested_by_name = {each.name: each for each in message.nested_type}
    sections: list[list[str]] = [write_reserved(message, 1)]
    sections.append([f"option {each};" for each in option_texts(message.options)])
    plain, in_oneofs = list[str](), dict[int, list[str]]()
    for field in message.field:
        is_member = field.HasField("oneof_index") and not field.proto3_optional
        group = nested_by_name.get(field.type_name.rpartition(".")[2]) if field.type == Field.TYPE_GROUP else None
        lines = write_field(field, is_proto3, entries, is_member=is_member, group=group)
        if is_member:
            in_oneofs.setdefault(field.oneof_index, []).extend(lines)
        else:
            plain += lines
    sections.append(plain)
    for index, lines in sorted(in_oneofs.items()):
        oneof = message.oneof_decl[index]
        options = [f"option {each};" for each in option_texts(oneof.options)]
        sections.append([f"oneof {oneof.name} {{", *indent(options + lines), "}"])
    ranges = [write_range(each.start, each.end - 1, HIGHEST_FIELD - 1) for each in message.extension_range]
    sections.append([f"extensions {', '.join(ranges)};"] if ranges else [])
    sections += [
        write_message(each, is_proto3)
        for each in message.nested_type
        if each.name not in entries and each.name not in groups
    ]
    sections += [write_enum(each) for each in message.enum_type]
    sections += write_extensions(message.extension, is_proto3)
    body = [line for section in sections if section for line in ("", *section)][1:]
    start = head or f"message {message.name}"
    return [f"{start} {{", *indent(body), "}"] if body else [f"{start} {{}}"]


def write_reserved(owner: Any, exclusive: int) -> list[str]:
    """Return the lines for reserved numbers and names; the end of a message's range is exclusive."""
    highest = HIGHEST_FIELD - 1 if exclusive else HIGHEST_ENUM
    ranges = [write_range(each.start, each.end - exclusive, highest) for each in owner.reserved_range]
    lines = [f"reserved {', '.join(ranges)};"] if ranges else []
    names = [quote(each) for each in owner.reserved_name]
    return lines + ([f"reserved {', '.join(names)};"] if names else [])


def write_range(start: int, end: int, highest: int) -> str:
    return str(start) if start == end else f"{start} to {'max' if end >= highest else end}"


def write_field(field: Any, is_proto3: bool, entries: dict[str, Any], *, is_member: bool, group: Any) -> list[str]:
    """Return the lines of a field."""
    entry = entries.get(field.type_name.rpartition(".")[2]) if field.label == Field.LABEL_REPEATED else None
    label = ""
    if field.label == Field.LABEL_REPEATED:
        label = "repeated "
    elif field.label == Field.LABEL_REQUIRED:
        label = "required "
    elif not is_member and (field.proto3_optional or not is_proto3):
        label = "optional "
    if entry is not None:
        label, kind = "", f"map<{type_text(entry.field[0])}, {type_text(entry.field[1])}>"
    else:
        kind = type_text(field)
    options = []
    if field.HasField("default_value"):
        quoted = field.type in (Field.TYPE_STRING, Field.TYPE_BYTES)
        options.append(f"default = {quote(field.default_value) if quoted else field.default_value}")
    if field.json_name and field.json_name != json_name(field.name):
        options.append(f"json_name = {quote(field.json_name)}")
    options += option_texts(field.options)
    tail = f" [{', '.join(options)}]" if options else ""
    if group is not None:
        return write_message(group, is_proto3, f"{label}group {group.name} = {field.number}{tail}")
    return [f"{label}{kind} {field.name} = {field.number}{tail};"]


def type_text(field: Any) -> str:
    """Return the type of a field."""
    return str(field.type_name or SCALAR_NAMES[field.type])


def json_name(name: str) -> str:
    """Return the JSON name that a field has by default."""
    first, *others = name.split("_")
    return first + "".join(each[:1].upper() + each[1:] for each in others)


def write_enum(enum: Any) -> list[str]:
    """Return the lines of an enum."""
    lines = write_reserved(enum, 0) + [f"option {each};" for each in option_texts(enum.options)]
    for value in enum.value:
        options = option_texts(value.options)
        tail = f" [{', '.join(options)}]" if options else ""
        lines.append(f"{value.name} = {value.number}{tail};")
    return [f"enum {enum.name} {{", *indent(lines), "}"]


def write_extensions(extensions: Any, is_proto3: bool) -> list[list[str]]:
    """Return the extend blocks, one for each extended message."""
    by_extendee: dict[str, list[str]] = {}
    for field in extensions:
        lines = write_field(field, is_proto3, {}, is_member=False, group=None)
        by_extendee.setdefault(field.extendee, []).extend(lines)
    return [[f"extend {name} {{", *indent(lines), "}"] for name, lines in by_extendee.items()]


def write_service(service: Any) -> list[str]:
    """Return the lines of a service."""
    lines = [f"option {each};" for each in option_texts(service.options)]
    for method in service.method:
        given = f"{'stream ' if method.client_streaming else ''}{method.input_type}"
        returned = f"{'stream ' if method.server_streaming else ''}{method.output_type}"
        head = f"rpc {method.name} ({given}) returns ({returned})"
        options = [f"option {each};" for each in option_texts(method.options)]
        lines += [f"{head} {{", *indent(options), "}"] if options else [f"{head};"]
    return [f"service {service.name} {{", *indent(lines), "}"]


def option_texts(options: Any) -> list[str]:
    """Return the options of a descriptor as `name = value`, known ones first."""
    texts = []
    for field, value in options.ListFields():
        if field.name in ("uninterpreted_option", "map_entry") or field.message_type is not None or field.is_extension:
            continue
        values = value if field.is_repeated else [value]
        texts += [f"{field.name} = {constant_text(field, each)}" for each in values]
    for option in options.uninterpreted_option:
        name = ".".join(f"({each.name_part})" if each.is_extension else each.name_part for each in option.name)
        texts.append(f"{name} = {uninterpreted_text(option)}")
    return texts


def constant_text(field: Any, value: Any) -> str:
    if field.enum_type is not None:
        return str(field.enum_type.values_by_number[value].name)
    if isinstance(value, bool):
        return "true" if value else "false"
    return quote(value) if isinstance(value, str) else str(value)


def uninterpreted_text(option: Any) -> str:
    """Return the value of an option that is not interpreted."""
    if option.HasField("string_value"):
        return quote(option.string_value.decode("utf-8", "replace"))
    if option.HasField("aggregate_value"):
        return f"{{ {option.aggregate_value} }}"
    for name in ("identifier_value", "positive_int_value", "negative_int_value", "double_value"):
        if option.HasField(name):
            return str(getattr(option, name))
    return '""'


def quote(text: str) -> str:
    """Return a string constant."""
    escaped = (
        text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
    )
    return f'"{escaped}"'
