"""Translates SQL text functions and operators to DuckDB where a macro does not suffice: patterns,
formats, concatenations, JSON paths."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from sqlglot import exp

from mltables.dialect.refusal import StatementRefused

if TYPE_CHECKING:
    from mltables.dialect.sql_generator import Generator

_MAKE_LISTS: Final = """
array split transform filter map_keys map_values map_entries collect_list collect_set array_agg
sequence array_sort sort_array array_distinct array_union array_except array_intersect slice flatten
array_repeat zip_with arrays_zip array_remove array_append array_prepend array_insert array_compact
regexp_extract_all
"""
_LISTS: Final = frozenset(_MAKE_LISTS.split())
_MOST_PIECES: Final = 1000
"""Highest limit of ``split()``: RE2 repeats a group no more often."""
_GROUP: Final = re.compile(r"\\(.)|\$(\d)|\$")
_CONVERSION: Final = re.compile(r"%(?:(%|n)|([-+0, ]*)(\d*)(?:\.(\d+))?([sdfxX]))")


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def literal(node: exp.Expr | None, beginning: str) -> str:
    """Returns the text of an SQL string literal.

    Raises:
        StatementRefused: the node is not a string literal. The message begins with ``beginning``.
    """
    if not isinstance(node, exp.Literal) or not node.is_string:
        raise StatementRefused(f"{beginning} has to be written as a text here.")
    return str(node.this)


def concatenation(writer: Generator, parts: list[exp.Expr]) -> str:
    """Returns the DuckDB SQL of ``a || b``, for lists or for texts. Other values are converted to
    texts."""
    flat: list[exp.Expr] = []
    for part in parts:
        flat.extend(part.flatten() if isinstance(part, exp.DPipe) else [part])
    if any(is_list(part) for part in flat):
        sql = writer.text(flat[0])
        for part in flat[1:]:
            sql = f"inner_both({sql}, {writer.text(part)})"
        return sql
    return "(" + " || ".join(as_text(writer, part) for part in flat) + ")"


def as_text(writer: Generator, node: exp.Expr) -> str:
    if isinstance(node, exp.Literal) and node.is_string:
        return writer.text(node)
    return writer.once("spark_string({0})", writer.text(node))


def is_list(node: exp.Expr) -> bool:
    if isinstance(node, exp.Column):
        return node.name.lower() == "aggregated_metrics"
    return isinstance(node, exp.Anonymous) and node.name.lower() in _LISTS


def _concat(writer: Generator, call: exp.Anonymous) -> str:
    writer.count(call, 1, 1000)
    return concatenation(writer, call.expressions)


def _concat_ws(writer: Generator, call: exp.Anonymous) -> str:
    writer.count(call, 1, 1000)
    separator, *parts = call.expressions
    lists = [
        f"inner_members({writer.text(part)})" if is_list(part) else f"[{as_text(writer, part)}]"
        for part in parts
    ]
    sql = lists[0] if lists else "CAST([] AS VARCHAR[])"
    for argument in lists[1:]:
        sql = f"list_concat({sql}, {argument})"
    members, given = f"spark_array_compact({sql})", writer.text(separator)
    if isinstance(separator, exp.Literal):
        return f"array_to_string({members}, {given})"
    # DuckDB's array_to_string() takes only a constant separator.
    return writer.once("inner_joined({0}, {1})", members, given)


def _array_join(writer: Generator, call: exp.Anonymous) -> str | None:
    writer.count(call, 2, 3)
    if not isinstance(call.expressions[1], exp.Literal):
        return None
    # The function for any separator takes time that grows with the square of the length.
    return f"inner_array_join({', '.join(map(writer.text, call.expressions))})"


def pattern(writer: Generator, node: exp.Expr) -> str:
    """Checks a regular expression and returns it as DuckDB SQL. DuckDB's RE2 accepts most of Java's
    syntax and refuses the rest itself. Only a literal with ``&&`` raises StatementRefused here,
    because in brackets RE2 would read ``&&`` as two characters."""
    if isinstance(node, exp.Literal) and node.is_string and "&&" in node.name:
        raise StatementRefused("Regular expressions have no && here.")
    return writer.text(node)


def _regexp_replace(writer: Generator, call: exp.Anonymous) -> str:
    writer.count(call, 3, 3)
    text, searched, replacement = call.expressions
    written = literal(replacement, "What regexp_replace() puts in place")

    def of_re2(match: re.Match[str]) -> str:
        if match[1]:
            return "\\\\" if match[1] == "\\" else match[1]
        if match[2]:
            return f"\\{match[2]}"
        raise StatementRefused(
            "In the replacement text of regexp_replace(), $ needs the number of a group."
        )

    made = quoted(_GROUP.sub(of_re2, written))
    return f"regexp_replace({writer.text(text)}, {pattern(writer, searched)}, {made}, 'g')"


def _with_pattern(writer: Generator, call: exp.Anonymous) -> None:
    """Checks the regular expression in a call. The call itself is translated to the macro of its
    name."""
    if len(call.expressions) > 1:
        pattern(writer, call.expressions[1])


def _split(writer: Generator, call: exp.Anonymous) -> str:
    writer.count(call, 2, 3)
    text, searched = writer.text(call.expressions[0]), pattern(writer, call.expressions[1])
    most = _written_number(call.expressions[2]) if len(call.expressions) > 2 else 0
    if most is None or most > _MOST_PIECES:
        raise StatementRefused(f"The limit of split() is a number up to {_MOST_PIECES} here.")
    if most <= 0:
        return f"spark_split({text}, {searched})"
    return f"inner_split({text}, {searched}, {most}, '{{{most - 1}}}')"


def _written_number(node: exp.Expr) -> int | None:
    """Returns the whole number that an expression is; None for any other expression."""
    if isinstance(node, exp.Neg) and (positive := _written_number(node.this)) is not None:
        return -positive
    return int(node.name) if isinstance(node, exp.Literal) and node.is_int else None


def _format(writer: Generator, call: exp.Anonymous) -> str:
    """Returns the DuckDB SQL of ``format_string('%s: %.2f', a, b)``, as a concatenation of its
    pieces."""
    form, *given = call.expressions or [exp.Null()]
    text = literal(form, f"The format of {call.name}()")
    pieces: list[str] = []
    position, index = 0, 0
    for match in _CONVERSION.finditer(text):
        pieces += _plain(call, text[position : match.start()])
        position = match.end()
        if match[1]:
            pieces.append(quoted("%" if match[1] == "%" else "\n"))
            continue
        if index >= len(given):
            raise StatementRefused(
                f"The format of {call.name}() needs more than {len(given)} arguments."
            )
        pieces.append(_conversion(writer, match, given[index]))
        index += 1
    pieces += _plain(call, text[position:])
    return "(" + (" || ".join(pieces) or "''") + ")"


def _plain(call: exp.Anonymous, text: str) -> list[str]:
    """Returns the literal texts between the conversions of a format."""
    if "%" in text:
        raise StatementRefused(f"The format of {call.name}() may have %s, %d, %f, %x and %% here.")
    return [quoted(text)] if text else []


def _conversion(writer: Generator, match: re.Match[str], value: exp.Expr) -> str:
    flags, width, places, kind = match[2], match[3], match[4], match[5]
    given = writer.text(value)
    if kind == "s":
        if places is not None or flags not in ("", "-"):
            raise StatementRefused("%s takes a width and - here.")
        sql = f"coalesce(spark_string({given}), 'null')"
        return f"printf('%{flags}{width}s', {sql})" if width else sql
    if "," in flags or "(" in flags:
        raise StatementRefused("Use format_number() for groups of thousands.")
    form = f"%{flags}{width}"
    if kind == "f":
        count = places if places is not None else "6"
        number = f"inner_round_double(CAST({given} AS DOUBLE), {count})"
        return f"coalesce(printf('{form}.{count}f', {number}), 'null')"
    if places is not None:
        raise StatementRefused(f"%{kind} takes no number of decimal places.")
    return f"coalesce(printf('{form}{kind}', inner_bigint({given})), 'null')"


def _format_number(writer: Generator, call: exp.Anonymous) -> str:
    writer.count(call, 2, 2)
    number, places = call.expressions
    if not (isinstance(places, exp.Literal) and places.is_int):
        raise StatementRefused("format_number() takes a number of decimal places.")
    shown = f"format('{{:,.{places.name}f}}', CAST({writer.text(number)} AS DOUBLE))"
    return f"replace(replace({shown}, 'nan', 'NaN'), 'inf', '∞')"


def _get_json_object(writer: Generator, call: exp.Anonymous) -> str | None:
    writer.count(call, 2, 2)
    path = literal(call.expressions[1], "The path of get_json_object()")
    if not path.startswith("$") or "*" in path or ".." in path:
        raise StatementRefused("A path in JSON is like $.a.b[0] here.")
    return None


def _decode(writer: Generator, call: exp.Anonymous) -> str:
    """Returns the DuckDB SQL of ``decode(value, a, 1, b, 2, otherwise)``."""
    writer.count(call, 3, 1000)
    value, *rest = (writer.text(expression) for expression in call.expressions)
    writer.check_length(len(value) * (len(rest) // 2))
    sql = "CASE"
    for candidate, result in zip(rest[::2], rest[1::2], strict=False):
        sql += f" WHEN {value} IS NOT DISTINCT FROM {candidate} THEN {result}"
    if len(rest) % 2:
        sql += f" ELSE {rest[-1]}"
    return f"{sql} END"


def _elt(writer: Generator, call: exp.Anonymous) -> str:
    writer.count(call, 2, 1000)
    index, *given = (writer.text(expression) for expression in call.expressions)
    return f"inner_elt([{', '.join(given)}], {index})"


def _hash(writer: Generator, call: exp.Anonymous) -> str:
    writer.count(call, 1, 16)
    sql = "CAST(42 AS BIGINT)"
    for expression in call.expressions:
        sql = writer.bound("inner_hash({0}, {1})", sql, writer.text(expression))
    return writer.bound("inner_signed({0})", sql)


def like(writer: Generator, node: exp.Binary, name: str, escape: str = "\\") -> str:
    """Returns the DuckDB SQL of LIKE, LIKE ANY or LIKE ALL with its escape character, by default a
    backslash."""
    if node.args.get("negate"):
        plain = node.copy()
        plain.set("negate", None)
        quantified = plain.expression
        if isinstance(quantified, exp.Any | exp.All):
            # NOT LIKE ALL: like none of the patterns
            other = exp.All if isinstance(quantified, exp.Any) else exp.Any
            plain.set("expression", other(this=quantified.this))
        return f"(NOT {like(writer, plain, name, escape)})"
    value, pattern_ = writer.text(node.this), node.expression
    if isinstance(pattern_, exp.Any | exp.All):
        inner = pattern_.this
        members = inner.expressions if isinstance(inner, exp.Tuple) else [inner.unnest()]
        if not members or any(isinstance(member.unnest(), exp.Query) for member in members):
            raise StatementRefused(
                "LIKE ANY and LIKE ALL take patterns that are written in a list."
            )
        writer.check_length(len(value) * len(members))
        joined = " OR " if isinstance(pattern_, exp.Any) else " AND "
        conditions = (
            f"{name}({value}, {writer.text(member)}, {quoted(escape)})" for member in members
        )
        return "(" + joined.join(conditions) + ")"
    return f"{name}({value}, {writer.text(pattern_)}, {quoted(escape)})"


def escaped(writer: Generator, node: exp.Escape) -> str:
    if not isinstance(node.this, exp.Like | exp.ILike):
        raise StatementRefused("ESCAPE follows LIKE.")
    name = "ilike_escape" if isinstance(node.this, exp.ILike) else "like_escape"
    return like(writer, node.this, name, literal(node.expression, "What escapes"))


def _like_call(writer: Generator, call: exp.Anonymous) -> str:
    writer.count(call, 2, 3)
    escape = literal(call.expressions[2], "What escapes") if len(call.expressions) > 2 else "\\"
    a, b = (writer.text(expression) for expression in call.expressions[:2])
    return f"{call.name.lower()}_escape({a}, {b}, {quoted(escape)})"


SPECIAL: Final[dict[str, Callable[[Generator, exp.Anonymous], str | None]]] = {
    "concat": _concat,
    "concat_ws": _concat_ws,
    "array_join": _array_join,
    "regexp_replace": _regexp_replace,
    "regexp_extract": _with_pattern,
    "regexp_extract_all": _with_pattern,
    "regexp_like": _with_pattern,
    "regexp_count": _with_pattern,
    "regexp_substr": _with_pattern,
    "rlike": _with_pattern,
    "regexp": _with_pattern,
    "split": _split,
    "format_string": _format,
    "printf": _format,
    "format_number": _format_number,
    "get_json_object": _get_json_object,
    "decode": _decode,
    "elt": _elt,
    "hash": _hash,
    "like": _like_call,
    "ilike": _like_call,
}
"""Translators by function name. If a translator returns None, the call gets the usual
translation."""
