"""A parser for the part of PromQL that our dashboard and alert rules use. It raises SyntaxError for anything else."""

from __future__ import annotations

import re

TOKEN = re.compile(
    r'\s*(?:("(?:[^"\\]|\\.)*")|(\d+(?:\.\d+)?)|([a-zA-Z_:][\w:]*)|(\[(?:\$__rate_interval|\d+[mhd])\])|(=~|!~|!=|==|>=|<=|[-+*/(){},=<>]))'
)
FUNCTIONS = {"rate": 1, "changes": 1, "deriv": 1, "predict_linear": 2, "histogram_quantile": 2, "time": 0}
"""The number of arguments of each function."""
AGGREGATIONS = frozenset({"sum", "max"})
COMPARISONS = (">", "<", ">=", "<=", "==", "!=")


def names_and_labels_in(condition: str) -> tuple[set[str], set[str]]:
    """Return the metrics and labels of comparisons that are joined by `and`."""
    reading = Reading(tokens_of(condition))
    reading.condition()
    if reading.tokens:
        raise SyntaxError(f"{reading.tokens[0]!r} is left over in {condition!r}")
    return reading.names, reading.label_names


def names_in(expression: str) -> set[str]:
    """Return the metrics that the expression uses."""
    reading = Reading(tokens_of(expression))
    reading.sum()
    if reading.tokens:
        raise SyntaxError(f"{reading.tokens[0]!r} is left over in {expression!r}")
    return reading.names


def tokens_of(expression: str) -> list[str]:
    tokens, position = [], 0
    while position < len(expression.rstrip()):
        found = TOKEN.match(expression, position)
        if found is None:
            raise SyntaxError(f"{expression[position:]!r} in {expression!r}")
        tokens.append(found.group().strip())
        position = found.end()
    return tokens


class Reading:
    """From the front of the tokens to their end."""

    def __init__(self, tokens: list[str]) -> None:
        self.tokens = tokens
        self.names: set[str] = set()
        self.label_names: set[str] = set()

    def take(self, *wanted: str) -> str:
        if not self.tokens or (wanted and self.tokens[0] not in wanted):
            raise SyntaxError(f"{wanted} are wanted before {self.tokens[:3]}")
        return self.tokens.pop(0)

    def next_is(self, *tokens: str) -> bool:
        return bool(self.tokens) and self.tokens[0] in tokens

    def condition(self) -> None:
        while True:
            self.sum()
            self.take(*COMPARISONS)
            self.sum()
            if not self.next_is("and"):
                return
            self.take()

    def sum(self) -> None:
        self.term()
        while self.next_is("+", "-", "*", "/"):
            self.take()
            if self.next_is("on"):
                self.take()
                self.labels()
                self.take("group_left", "group_right")
                self.labels()
            self.term()

    def term(self) -> None:
        token = self.take()
        if token == "(":
            self.sum()
            self.take(")")
        elif token in FUNCTIONS:
            self.arguments(FUNCTIONS[token])
        elif token in AGGREGATIONS:
            if self.next_is("by"):
                self.take()
                self.labels()
            self.arguments(1)
        elif not token[0].isdigit():
            self.selector(token)

    def arguments(self, count: int) -> None:
        self.take("(")
        for number in range(count):
            if number:
                self.take(",")
            self.sum()
        self.take(")")

    def labels(self) -> None:
        self.take("(")
        while not self.next_is(")"):
            self.label()
            if not self.next_is(")"):
                self.take(",")
        self.take(")")

    def label(self) -> None:
        name = self.take()
        assert name.isidentifier()
        self.label_names.add(name)

    def selector(self, name: str) -> None:
        if not name.isidentifier():
            raise SyntaxError(f"{name!r} is no metric")
        self.names.add(name)
        if self.next_is("{"):
            self.take()
            while not self.next_is("}"):
                self.label()
                self.take("=", "=~", "!~", "!=")
                assert self.take().startswith('"')
                if not self.next_is("}"):
                    self.take(",")
            self.take("}")
        if self.tokens and self.tokens[0].startswith("["):
            self.take()
