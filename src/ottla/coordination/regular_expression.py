"""Regular expressions in RE2's syntax, matched in time linear in the length of the name.

Members send the expressions and the broker matches them against every topic, so none may occupy it for long. Like RE2, this matcher has no back
references and no lookaround. Python's `re` is no alternative, because it backtracks.
"""

from __future__ import annotations

import math
from functools import lru_cache

from ottla.coordination.regular_syntax import (
    Chars,
    Choice,
    Edge,
    Node,
    Repeat,
    Sequence,
    Syntax,
    SyntaxFault,
)

MOST_STATES = 5_000
"""The maximum number of states of an expression. A choice among 200 names has fewer."""
MOST_VISITS = 1_000_000
"""The maximum number of states visited for all names of one request, about half a second. Cached steps do not count."""
MOST_STEPS = 20_000
"""The maximum number of cached steps, each from a set of states by one character."""
START, WORD, OTHER = "start", "word", "other"
"""The kinds of the character to the left of a position."""
END = ""
MATCH = 0

States = frozenset[int]
State = Chars | Edge | tuple[int, ...]


class TooMuchWork(SyntaxFault):
    """The error for an expression with so many states at a time that matching takes too long."""


class RegularExpression:
    """An expression as a nondeterministic automaton. Raise SyntaxFault if the expression is invalid."""

    def __init__(self, text: str) -> None:
        self._states: list[State] = [()]
        self._follow: list[int] = [MATCH]
        self._begin: States = frozenset({self._emit(Syntax(text).parse(), MATCH)})
        self._steps: dict[tuple[States, str, str], States] = {}
        self._left: float = math.inf

    def allow(self, visits: int) -> None:
        """Limit the work of the following matches: `matches` raises TooMuchWork if it would visit more states."""
        self._left = visits

    def matches(self, name: str) -> bool:
        """Return True if the expression matches the whole name."""
        states, left = self._begin, START
        for char in name:
            states = self._step(states, left, char)
            if not states:
                return False
            left = WORD if is_word(char) else OTHER
        return bool(self._step(states, left, END))

    def _step(self, states: States, left: str, char: str) -> States:
        key = (states, left, char)
        found = self._steps.get(key)
        if found is None:
            if len(self._steps) >= MOST_STEPS:
                self._steps.clear()
            if self._left < 0:
                raise TooMuchWork("it takes too long to match: use fewer repetitions")
            found = self._steps[key] = self._worked_out(states, left, char)
        return found

    def _worked_out(self, states: States, left: str, char: str) -> States:
        """Return the states after a character; at the end of the name, whether the expression matched."""
        reached: set[int] = set()
        seen: set[int] = set()
        todo = list(states)
        while todo:
            number = todo.pop()
            if number in seen:
                continue
            seen.add(number)
            state = self._states[number]
            if number == MATCH:
                reached.update({MATCH} if char == END else ())
            elif isinstance(state, tuple):
                todo += state
            elif isinstance(state, Edge):
                todo += [self._follow[number]] if holds(state.kind, left, char) else []
            elif char != END and state.holds(char):
                reached.add(self._follow[number])
        self._left -= len(seen)
        return frozenset(reached)

    def _add(self, state: State, follow: int) -> int:
        if len(self._states) >= MOST_STATES:
            raise SyntaxFault("expression too large")
        self._states.append(state)
        self._follow.append(follow)
        return len(self._states) - 1

    def _emit(self, node: Node, follow: int) -> int:
        """Return the state in which a node starts; `follow` is the state after it."""
        match node:
            case Sequence():
                for part in reversed(node.parts):
                    follow = self._emit(part, follow)
                return follow
            case Choice():
                return self._add(tuple(self._emit(part, follow) for part in node.parts), follow)
            case Repeat():
                return self._emit_repeat(node, follow)
            case _:
                return self._add(node, follow)

    def _emit_repeat(self, node: Repeat, follow: int) -> int:
        start = follow
        if node.most is None:
            start = self._add((), follow)
            self._states[start] = (self._emit(node.part, start), follow)
        else:
            for _ in range(node.most - node.least):
                start = self._add((self._emit(node.part, start), follow), follow)
        for _ in range(node.least):
            start = self._emit(node.part, start)
        return start


def is_word(char: str) -> bool:
    """Return True if the character is a word character."""
    return char.isascii() and (char.isalnum() or char == "_")


def holds(kind: str, left: str, char: str) -> bool:
    """Return True if an assertion holds at a position: `^`, `$`, `b` at a word boundary, `B` anywhere else."""
    if kind == "^":
        return left == START
    if kind == "$":
        return char == END
    is_edge = (left == WORD) != (char != END and is_word(char))
    return is_edge if kind == "b" else not is_edge


@lru_cache(maxsize=256)
def compiled(text: str) -> RegularExpression:
    return RegularExpression(text)
