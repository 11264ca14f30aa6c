"""Parses SCIM's filters of lists and paths of PATCH (RFC 7644, sections 3.4.2.2 and 3.5.2), as far
as directories send them: ``attribute eq value``, joined by ``and``, and ``attribute[…].part``."""

from __future__ import annotations

import json
import re
from typing import Final, NamedTuple

from users.scim.errors import ScimError, invalid_filter

MAX_LENGTH: Final = 4_000

CORE: Final = "urn:ietf:params:scim:schemas:core:2.0:"
_CORE_PREFIXES: Final = (f"{CORE}User:".lower(), f"{CORE}Group:".lower())
_TOKEN: Final = re.compile(r'\s*(?:("(?:[^"\\]|\\.)*")|([^\s"\[\]()]+)|([\[\]()]))', re.DOTALL)
_NAME: Final = re.compile(r"[a-z$][a-z0-9$_-]*(\.[a-z$][a-z0-9$_-]*)?", re.IGNORECASE | re.ASCII)

Value = str | bool | int | float | None


class AttributeEquals(NamedTuple):
    """A condition ``attribute eq value`` of a SCIM filter."""

    attribute: str
    """The attribute's name in lower case, such as ``emails.value``, without the URN of the core
    schema."""
    value: Value
    where: tuple[tuple[str, Value], ...] = ()
    """Conditions on the same entry of a list: ``(("type", "work"),)`` for
    ``emails[type eq "work"].value eq …``."""


class Path(NamedTuple):
    """The part of a user or group that an operation of SCIM's PATCH changes."""

    attribute: str
    """The attribute's name in lower case; an attribute of another schema keeps its URN."""
    where: tuple[tuple[str, Value], ...]
    """Conditions that select entries of a list; empty for all."""
    part: str
    """The name of the part of the attribute, such as ``value``, in lower case; "" for the whole
    attribute."""


def parse_filter(text: str) -> list[AttributeEquals]:
    """Parses a SCIM filter and returns its conditions, all of which must hold. Raises ScimError
    (invalidFilter)."""
    tokens = _Tokens(text, "filter")
    conditions = [_condition(tokens)]
    while not tokens.is_over():
        tokens.expect("and")
        conditions.append(_condition(tokens))
    return conditions


def parse_path(text: str) -> Path:
    """Parses the path of an operation of SCIM's PATCH, which says what the operation changes.
    Raises ScimError (invalidPath)."""
    tokens = _Tokens(text, "path")
    name = tokens.name()
    where: tuple[tuple[str, Value], ...] = ()
    attribute, _, part = name.partition(".") if not name.startswith("urn:") else (name, "", "")
    if tokens.takes("["):
        if part:
            raise tokens.failure("a part cannot be followed by brackets")
        where = _where(tokens)
        if not tokens.is_over():
            dotted = tokens.name(is_part=True)
            part = dotted
    if not tokens.is_over():
        raise tokens.failure("something follows its end")
    return Path(attribute, where, part)


def _condition(tokens: _Tokens) -> AttributeEquals:
    name = tokens.name()
    if tokens.takes("["):
        where = _where(tokens)
        if tokens.is_over() or tokens.peeks("and"):
            # members[value eq "x"]: an entry with this value.
            part, value = next((pair for pair in where if pair[0] == "value"), where[0])
            return AttributeEquals(f"{name}.{part}", value, where)
        name = f"{name}.{tokens.name(is_part=True)}"
        tokens.expect("eq")
        return AttributeEquals(name, tokens.value(), where)
    tokens.expect("eq")
    return AttributeEquals(name, tokens.value())


def _where(tokens: _Tokens) -> tuple[tuple[str, Value], ...]:
    conditions = []
    while True:
        name = tokens.name()
        tokens.expect("eq")
        conditions.append((name, tokens.value()))
        if tokens.takes("]"):
            return tuple(conditions)
        tokens.expect("and")


class _Tokens:
    """The words, texts and brackets of a filter or path, which are consumed one after the other."""

    def __init__(self, text: str, kind: str) -> None:
        self._kind = kind
        self._tokens: list[tuple[str, str, str]] = []
        self._position = 0
        if len(text) > MAX_LENGTH:
            raise self.failure(f"it has more than {MAX_LENGTH} characters")
        end, stripped = 0, text.rstrip()
        while end < len(stripped):
            match = _TOKEN.match(stripped, end)
            if match is None:
                raise self.failure("a text has no end")
            self._tokens.append((match[1] or "", match[2] or "", match[3] or ""))
            end = match.end()

    def failure(self, reason: str) -> ScimError:
        if self._kind == "path":
            return ScimError(400, f"The path is not valid: {reason}.", "invalidPath")
        return invalid_filter(
            f"The filter is not supported: {reason}. Supported are comparisons by 'eq', joined by "
            "'and'."
        )

    def is_over(self) -> bool:
        return self._position >= len(self._tokens)

    def _next(self) -> tuple[str, str, str]:
        if self.is_over():
            raise self.failure("it ends too early")
        self._position += 1
        return self._tokens[self._position - 1]

    def peeks(self, word: str) -> bool:
        """Whether the next token is this word, in upper or lower case. Does not consume it."""
        return not self.is_over() and self._tokens[self._position][1].lower() == word

    def takes(self, bracket: str) -> bool:
        """Consumes the next token if it is this bracket. Returns whether it was."""
        if self.is_over() or self._tokens[self._position][2] != bracket:
            return False
        self._position += 1
        return True

    def expect(self, word: str) -> None:
        _, token, _ = self._next()
        if token.lower() != word:
            raise self.failure(f"it has something else than '{word}'")

    def name(self, *, is_part: bool = False) -> str:
        """Consumes the name of an attribute, or with ``is_part`` the ``.part`` after a bracket.
        Returns it in lower case, without the URN of the core schema and the dot."""
        _, token, _ = self._next()
        name = token.lower()
        if is_part:
            if not name.startswith("."):
                raise self.failure("brackets are followed by something else than a part")
            name = name[1:]
        for prefix in _CORE_PREFIXES:
            name = name.removeprefix(prefix)
        if not name.startswith("urn:") and not _NAME.fullmatch(name):
            raise self.failure("it has something else than the name of an attribute")
        return name

    def value(self) -> Value:
        text, word, _ = self._next()
        try:
            value: Value = json.loads(text or word)
        except ValueError:
            raise self.failure("it has something else than a value") from None
        return value
