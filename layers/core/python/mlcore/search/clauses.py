"""Groups the tokens of a filter or an order into clause items, as MLflow's SQL parser (sqlparse)
does.

An item is, for example, a whole comparison (``metrics.a > 1``), a name, a keyword or a text in
parentheses. This module does not interpret the items.
"""

from __future__ import annotations

from typing import NamedTuple

from mlcore.errors import InvalidParameterValue
from mlcore.search import filter_tokens as t

# Kinds of clause items. IDENTIFIER covers `name`, `a.b."c d"`, and a key in quotes.
IDENTIFIER, PARENTHESIS, _OPERATION, _NULL = "identifier", "parenthesis", "operation", "null"
COMPARISON, NULL_CHECK, _SPOILED = "condition", "null check", "spoiled"
_NUMBERS = (t.INTEGER, t.FLOAT, t.HEXADECIMAL)
_KEY_PARTS = (t.NAME, t.SYMBOL, t.STRING, t.WILDCARD)
# A name directly after one of these belongs to it (SQL's alias).
_ALIASED = (IDENTIFIER, PARENTHESIS, _OPERATION, COMPARISON, *_NUMBERS)


class ClauseItem(NamedTuple):
    kind: str
    text: str
    start: int
    end: int
    parts: tuple[ClauseItem, ...] = ()
    """Left side, operator and right side of a comparison; empty for other items."""


def parse_clauses(text: str, tokens: list[t.Token]) -> list[ClauseItem]:
    """Groups the tokens of a search filter into clauses (:class:`ClauseItem`), each comparison as a
    single one. Leaves out the ANDs between them.

    Raises InvalidParameterValue if the filter has more than one statement (``;``).
    """
    items = ClauseReader(text, tokens).items()
    _refuse_second_statement(text, items)
    items = _join_word_operators(text, join_aliases(text, items))
    return [item for item in items if _keyword(item) != "AND"]


class ClauseReader:
    """Groups the tokens of a search's filter or order_by into clauses (:meth:`items`). Raises
    nothing: a token that belongs to no other clause becomes a clause by itself."""

    def __init__(self, text: str, tokens: list[t.Token]) -> None:
        self._text = text
        self._tokens = [token for token in tokens if token.kind != t.SPACE]
        self._at = 0
        self._closing = _closings(self._tokens)

    def items(self) -> list[ClauseItem]:
        items = []
        while self._at < len(self._tokens):
            left = self._operand()
            if left is None:
                token = self._tokens[self._at]
                self._at += 1
                items.append(self._item(token.kind, token.start, token.end))
                continue
            items.append(self._comparison(left) or left)
        return items

    def _comparison(self, left: ClauseItem) -> ClauseItem | None:
        if self._kind(self._at) != t.COMPARISON:
            return None
        sign = self._tokens[self._at]
        self._at += 1
        right = self._operand()
        if right is None:
            self._at -= 1
            return None
        operator = self._item(sign.kind, sign.start, sign.end)
        return self._item(COMPARISON, left.start, right.end, (left, operator, right))

    def _operand(self) -> ClauseItem | None:
        operand = self._primary()
        while (
            operand and operand.kind != _NULL and self._kind(self._at) in (t.ARITHMETIC, t.WILDCARD)
        ):
            self._at += 1
            right = self._primary()
            if right is None or right.kind == _NULL:
                self._at -= 1
                break
            operand = self._item(_OPERATION, operand.start, right.end)
        return operand

    def _primary(self) -> ClauseItem | None:
        if self._at >= len(self._tokens):
            return None
        token = self._tokens[self._at]
        if token.kind in (t.NAME, t.SYMBOL):
            return self._identifier()
        if token.kind in (t.STRING, t.INTEGER, t.FLOAT, t.PLACEHOLDER):
            self._at += 1
            return self._item(token.kind, token.start, token.end)
        if token.kind == t.KEYWORD and token.word == "NULL":
            self._at += 1
            return self._item(_NULL, token.start, token.end)
        if token.word == "(":
            return self._parenthesis()
        return None

    def _identifier(self) -> ClauseItem:
        start = self._at
        self._at += 1
        while self._word(self._at) == "." and self._kind(self._at - 1) != t.WILDCARD:
            self._at += 1
            if self._kind(self._at) in _KEY_PARTS:
                self._at += 1
        while self._kind(self._at) == t.ORDER:
            self._at += 1
        return self._item(IDENTIFIER, self._tokens[start].start, self._tokens[self._at - 1].end)

    def _parenthesis(self) -> ClauseItem | None:
        closing = self._closing.get(self._at)
        if closing is None:
            return None
        start, self._at = self._tokens[self._at].start, closing + 1
        return self._item(PARENTHESIS, start, self._tokens[closing].end)

    def _kind(self, at: int) -> str:
        return self._tokens[at].kind if at < len(self._tokens) else ""

    def _word(self, at: int) -> str:
        return self._tokens[at].word if at < len(self._tokens) else ""

    def _item(
        self, kind: str, start: int, end: int, parts: tuple[ClauseItem, ...] = ()
    ) -> ClauseItem:
        return ClauseItem(kind, self._text[start:end], start, end, parts)


def _closings(tokens: list[t.Token]) -> dict[int, int]:
    """Returns the position of each opening parenthesis that is closed, mapped to the position of
    its closing one."""
    closings: dict[int, int] = {}
    open_: list[int] = []
    for at, token in enumerate(tokens):
        if token.word == "(":
            open_.append(at)
        elif token.word == ")" and open_:
            closings[open_.pop()] = at
    return closings


def _refuse_second_statement(text: str, items: list[ClauseItem]) -> None:
    if any(item.text == ";" for item in items[:-1]):
        raise InvalidParameterValue(
            f"Search filter contained multiple expression {text!r}. Provide AND-ed expression list."
        )


def join_aliases(text: str, items: list[ClauseItem]) -> list[ClauseItem]:
    """Joins each name in a search's filter or order to the clause item directly before it, as SQL
    reads ``a b`` as "a, called b". Returns the items."""
    joined: list[ClauseItem] = []
    for item in items:
        last = joined[-1] if joined else None
        if item.kind == IDENTIFIER and last and last.kind in _ALIASED:
            # Only a field may contain spaces; after a whole comparison, the name is a mistake.
            kind = IDENTIFIER if last.kind == IDENTIFIER else _SPOILED
            joined[-1] = ClauseItem(
                kind, text[last.start : item.end], last.start, item.end, (last, item)
            )
        else:
            joined.append(item)
    return joined


def _join_word_operators(text: str, items: list[ClauseItem]) -> list[ClauseItem]:
    """Returns the items, with ``x IN (…)``, ``x NOT IN (…)``, ``x IS NULL`` and ``x IS NOT NULL``
    each joined to one item."""
    joined = []
    at = 0
    while at < len(items):
        item = items[at]
        words = [_keyword(following) for following in items[at + 1 : at + 3]]
        taken, kind, operator = 0, COMPARISON, ""
        if item.kind == IDENTIFIER:
            if words[:1] == ["IN"] and _is_list(items, at + 2):
                # The case of the keyword is kept: filters of experiments are case-sensitive.
                taken, operator = 3, items[at + 1].text
            elif words[:2] == ["NOT", "IN"] and _is_list(items, at + 3):
                taken, operator = 4, "NOT IN"
            elif words[:2] in (["IS", "NULL"], ["IS", "NOT NULL"]):
                taken, kind, operator = 3, NULL_CHECK, f"IS {words[1]}"
        if taken:
            last = items[at + taken - 1]
            sign = ClauseItem(t.COMPARISON, operator, last.start, last.start)
            joined.append(
                ClauseItem(
                    kind, text[item.start : last.end], item.start, last.end, (item, sign, last)
                )
            )
        else:
            joined.append(item)
        at += taken or 1
    return joined


def _keyword(item: ClauseItem) -> str:
    return item.text.upper() if item.kind in (t.KEYWORD, _NULL) else ""


def _is_list(items: list[ClauseItem], at: int) -> bool:
    return at < len(items) and items[at].kind == PARENTHESIS
