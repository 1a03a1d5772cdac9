"""The mistakes that a module could have: conditions turned round, bounds off by one, statements left out.

Pure: from text to text. Left alone is what no test should look at: annotations, docstrings, `assert`, what is logged,
how a thing prints itself, and the words of an error.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterable, Iterator
from typing import NamedTuple

COMPARED: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
COMBINED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}
CALLED = {"min": "max", "max": "min", "any": "all", "all": "any"}
RENEWERS = frozenset({"replace", "_replace", "changed", "moved"})
"""Calls with keywords that act as assignments: removing one is like removing a statement."""
LOGGERS = frozenset({"LOG", "log", "logging", "warnings"})
PRINTERS = frozenset({"__repr__", "__str__", "__format__"})


class Mutant(NamedTuple):
    """One mistake: the bytes from `start` to `stop` of the source become `new`."""

    line: int
    last_line: int
    start: int
    stop: int
    old: str
    new: str

    @property
    def change(self) -> str:
        """Return the mutation as text."""
        old, new = difference(" ".join(self.old.split()), " ".join(bare(self.new).split()))
        return f"{old} → {new}"

    def planted(self, source: bytes) -> bytes:
        """The source with the mistake; lines keep their numbers."""
        lost = source.count(b"\n", self.start, self.stop)
        return source[: self.start] + self.new.encode() + b" \\\n" * lost + source[self.stop :]


def bare(text: str) -> str:
    """Without the parentheses that every planted expression has."""
    return text[1:-1] if text.startswith("(") else text


def difference(old: str, new: str, width: int = 100) -> tuple[str, str]:
    """Both texts, or where these are long no more than the part that differs, to whole words."""
    if len(old) <= width:
        return old, new
    head, tail = old.split(" "), new.split(" ")
    before = next((i for i, (a, b) in enumerate(zip(head, tail, strict=False)) if a != b), min(len(head), len(tail)))
    rest = zip(reversed(head[before:]), reversed(tail[before:]), strict=False)
    after = next((i for i, (a, b) in enumerate(rest) if a != b), min(len(head), len(tail)) - before)
    return tuple(f"… {' '.join(words[before : len(words) - after])} …" for words in (head, tail))  # type: ignore[return-value]


def mutants(source: str) -> list[Mutant]:
    """Every mistake this module could have, in the order of its lines."""
    starts = line_starts(source.encode())
    found = [Mutant(*place(node, starts), old=ast.unparse(node), new=new) for node, new in changes(ast.parse(source))]
    return sorted(set(found))


def line_starts(source: bytes) -> list[int]:
    """Return the start position of each line, line 1 at index 1."""
    starts = [0, 0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    return starts


def place(node: ast.expr | ast.stmt, starts: list[int]) -> tuple[int, int, int, int]:
    """First and last line, and the bytes from where to where."""
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    return (
        node.lineno,
        node.end_lineno,
        starts[node.lineno] + node.col_offset,
        starts[node.end_lineno] + node.end_col_offset,
    )


def changes(tree: ast.AST) -> Iterator[tuple[ast.expr | ast.stmt, str]]:
    """Yield nodes with their replacements."""
    bounds = {id(bound) for node in ast.walk(tree) for bound in bounds_of(node)}
    for node in visible(tree):
        if isinstance(node, ast.stmt):
            yield from ((node, text) for text in of_statement(node))
        elif isinstance(node, ast.expr) and id(node) not in bounds:
            yield from ((node, f"({ast.unparse(other)})") for other in of_expression(node))
        for condition in conditions(node):
            if not isinstance(condition, ast.Compare | ast.BoolOp | ast.UnaryOp | ast.Constant):
                yield condition, f"(not {ast.unparse(condition)})"


def bounds_of(node: ast.AST) -> list[ast.expr]:
    """Numbers that something is less or more than: another bound is what another comparison with this one is."""
    if not isinstance(node, ast.Compare) or any(isinstance(op, ast.Eq | ast.NotEq) for op in node.ops):
        return []
    return [each for each in (node.left, *node.comparators) if isinstance(each, ast.Constant)]


def visible(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes that are worth a mistake, `node` among them."""
    if is_hidden(node):
        return
    yield node
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "decorator_list", "bases", "exc", "msg"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from visible(child)


def is_hidden(node: ast.AST) -> bool:
    """Return true if no test is expected to detect a change of it."""
    match node:
        case ast.Assert() | ast.JoinedStr() | ast.Import() | ast.ImportFrom():
            return True
        case ast.FunctionDef(name=name):
            return name in PRINTERS
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return True
        case ast.Expr(value=ast.Constant()):
            return True
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name))):
            return name in LOGGERS
        case ast.Expr(value=ast.Call() as call):
            return is_hidden(call)
    return False


def of_statement(node: ast.stmt) -> Iterator[str]:
    """A statement left out."""
    match node:
        case ast.Expr(value=ast.Call() | ast.Await()) | ast.AugAssign() | ast.Continue() | ast.Raise() | ast.Delete():
            yield "pass"
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            yield "pass"
        case ast.Return(value=None):
            yield "pass"


def of_expression(node: ast.expr) -> Iterator[ast.expr]:
    """An expression with a mistake in it."""
    match node:
        case ast.Compare():
            yield from of_comparison(node)
        case ast.BoolOp(values=values):
            for index in range(len(values)):
                rest = values[:index] + values[index + 1 :]
                yield rest[0] if len(rest) == 1 else ast.BoolOp(node.op, rest)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield operand
        case ast.BinOp(op=op, left=left, right=right) if type(op) in COMBINED and not (is_text(left) or is_text(right)):
            yield ast.BinOp(left, COMBINED[type(op)](), right)
        case ast.Constant(value=bool() as value):
            yield ast.Constant(not value)
        case ast.Constant(value=int() | float() as number):
            yield ast.Constant(number + 1)
        case ast.Call(func=ast.Name(id=name)) if name in CALLED:
            yield ast.Call(ast.Name(CALLED[name]), node.args, node.keywords)
        case ast.Call() if name_of(node.func) in RENEWERS:
            yield from (without(node, index) for index in range(len(node.keywords)))


def of_comparison(node: ast.Compare) -> Iterator[ast.expr]:
    for index, op in enumerate(node.ops):
        for other in COMPARED[type(op)]:
            changed = copy.copy(node)
            changed.ops = [*node.ops[:index], other(), *node.ops[index + 1 :]]
            yield changed


def conditions(node: ast.AST) -> Iterable[ast.expr]:
    """Return the condition of a statement."""
    match node:
        case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test):
            return [test]
        case ast.comprehension(ifs=tests):
            return tests
        case ast.match_case(guard=ast.expr() as guard):
            return [guard]
    return []


def without(call: ast.Call, index: int) -> ast.expr:
    return ast.Call(call.func, call.args, call.keywords[:index] + call.keywords[index + 1 :])


def name_of(function: ast.expr) -> str:
    match function:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""


def is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr | ast.List | ast.Tuple) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)
    )
