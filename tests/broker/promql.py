"""A parser for the part of PromQL that our dashboard uses. It raises SyntaxError for anything else."""

from __future__ import annotations

import re

TOKEN = re.compile(
    r'\s*(?:("(?:[^"\\]|\\.)*")|(\d+(?:\.\d+)?)|([a-zA-Z_:][\w:]*)|(\[\$__rate_interval\])|(=~|!~|!=|[-+*/(){},=]))'
)
FUNCTIONS = {"rate": 1, "histogram_quantile": 2, "time": 0}
"""The number of arguments of each function."""
AGGREGATIONS = frozenset({"sum", "max"})


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

    def take(self, *wanted: str) -> str:
        if not self.tokens or (wanted and self.tokens[0] not in wanted):
            raise SyntaxError(f"{wanted} are wanted before {self.tokens[:3]}")
        return self.tokens.pop(0)

    def next_is(self, *tokens: str) -> bool:
        return bool(self.tokens) and self.tokens[0] in tokens

    def sum(self) -> None:
        self.term()
        while self.next_is("+", "-", "*", "/"):
            self.take()
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
            assert self.take().isidentifier()
            if not self.next_is(")"):
                self.take(",")
        self.take(")")

    def selector(self, name: str) -> None:
        if not name.isidentifier():
            raise SyntaxError(f"{name!r} is no metric")
        self.names.add(name)
        if self.next_is("{"):
            self.take()
            while not self.next_is("}"):
                assert self.take().isidentifier()
                self.take("=", "=~", "!~", "!=")
                assert self.take().startswith('"')
                if not self.next_is("}"):
                    self.take(",")
            self.take("}")
        if self.next_is("[$__rate_interval]"):
            self.take()
