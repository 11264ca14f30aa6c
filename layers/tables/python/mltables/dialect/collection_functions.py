"""Translates SQL constructors of lists, maps and structs, and SQL functions that take a lambda."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from sqlglot import exp

from mltables.dialect.json_inference import schema_of_json
from mltables.dialect.json_schemas import from_json
from mltables.dialect.refusal import StatementRefused
from mltables.dialect.syntax_nodes import find_all
from mltables.dialect.text_functions import is_list, literal

if TYPE_CHECKING:
    from mltables.dialect.sql_generator import Generator

_NAME: Final = re.compile(r'[\w.)"]+')
"""Matches the SQL of a column, or of a field of a struct, in parentheses or not."""


def _lambda(call: exp.Anonymous, position: int, least: int, most: int) -> exp.Lambda:
    argument = call.expressions[position] if position < len(call.expressions) else None
    if not isinstance(argument, exp.Lambda) or not least <= len(argument.expressions) <= most:
        raise StatementRefused(f"{call.name}() takes a lambda, such as x -> x + 1.")
    return argument


def _body(writer: Generator, function: exp.Lambda, put: dict[str, str]) -> str:
    """Returns the SQL of a lambda's body. ``put`` has the new names of its parameters."""
    body = function.this.copy()
    holder = exp.Paren(this=body)
    for node in list(find_all(holder, exp.Identifier)):
        name = node.name.lower()
        if name not in put or _means_another(node, name):
            continue
        target: exp.Expr = node
        if isinstance(node.parent, exp.Column) and node.parent.this is node:
            if node.parent.args.get("table"):
                continue
            target = node.parent
        elif isinstance(node.parent, exp.Column):
            # entry.metric_name: a field of the parameter
            if node.arg_key != "table":
                continue
            field = node.parent.this
            node.parent.replace(exp.Var(this=f"({put[name]}).{writer.text(field)}"))
            continue
        target.replace(exp.Var(this=put[name]))
    return writer.text(holder.this)


def _means_another(word: exp.Expr, name: str) -> bool:
    """Whether a word in the body of a lambda is no mention of the lambda's parameter of this name:
    it is a field, as the second ``x`` in ``x.x``, or a lambda in the body has such a parameter."""
    if isinstance(word.parent, exp.Dot) and word.arg_key == "expression":
        return True
    inner = word.find_ancestor(exp.Lambda)
    while inner is not None:
        if name in _names(inner):
            return True
        inner = inner.find_ancestor(exp.Lambda)
    return False


def _names(function: exp.Lambda) -> list[str]:
    return [parameter.name.lower() for parameter in function.expressions]


def _depth(function: exp.Lambda) -> int:
    """Returns the number of lambdas in a lambda's body. Names that contain it differ from those of
    the lambdas in the body."""
    return sum(1 for _ in find_all(function.this, exp.Lambda))


def _of_list(name: str) -> Callable[[Generator, exp.Anonymous], str]:
    def written(writer: Generator, call: exp.Anonymous) -> str:
        writer.count(call, 2, 2)
        function = _lambda(call, 1, 1, 2)
        names = _names(function)
        item, index = f"inner_x{_depth(function)}", f"inner_i{_depth(function)}"
        put = {names[0]: item}
        given = item
        if len(names) == 2:
            # The index counts from 0 in Databricks.
            put[names[1]] = f"CAST({index} - 1 AS INTEGER)"
            given = f"{item}, {index}"
        body = _body(writer, function, put)
        return f"{name}({writer.text(call.expressions[0])}, lambda {given}: {body})"

    return written


def _flags(name: str, of_none: str) -> Callable[[Generator, exp.Anonymous], str]:
    """Returns the writer of ``exists`` or ``forall``. Most lists of events and links are empty, and
    the macro takes longer than finding out.

    Args:
        of_none: the value for an empty list.
    """

    def written(writer: Generator, call: exp.Anonymous) -> str:
        value = f"{name}({_of_list('list_transform')(writer, call)})"
        items = _column(writer, call.expressions[0])
        return f"CASE WHEN len({items}) = 0 THEN {of_none} ELSE {value} END" if items else value

    return written


def _get(writer: Generator, call: exp.Anonymous) -> str | None:
    """Returns the SQL of ``get`` if its list is a column: to ask for the length first takes less
    time than to take a member of an empty list."""
    writer.count(call, 2, 2)
    items = _column(writer, call.expressions[0])
    return f"inner_get({items}, {writer.text(call.expressions[1])})" if items else None


def _column(writer: Generator, items: exp.Expr) -> str | None:
    """Returns the SQL of a list that is a column or a field of one, which may be repeated. Returns
    None for all else, without generating the SQL of calls in it: nested calls would take
    exponential time."""
    if any(True for _ in find_all(items, exp.Func, exp.Query)):
        return None
    sql = writer.text(items)
    return sql if _NAME.fullmatch(sql.strip("()")) else None


def _aggregate(writer: Generator, call: exp.Anonymous) -> str:
    writer.count(call, 3, 4)
    items, start, _, *finish = call.expressions
    function = _lambda(call, 2, 2, 2)
    names = _names(function)
    total, item = f"inner_a{_depth(function)}", f"inner_x{_depth(function)}"
    body = _body(writer, function, {names[0]: total, names[1]: item})
    sql = f"list_reduce({writer.text(items)}, lambda {total}, {item}: {body}, {writer.text(start)})"
    if finish:
        last = _lambda(call, 3, 1, 1)
        total = f"inner_a{_depth(last)}"
        body = _body(writer, last, {_names(last)[0]: total})
        sql = f"list_transform([{sql}], lambda {total}: {body})[1]"
    return sql


def _zip_with(writer: Generator, call: exp.Anonymous) -> str:
    writer.count(call, 3, 3)
    function = _lambda(call, 2, 2, 2)
    pair = f"inner_p{_depth(function)}"
    put = {name: f"{pair}[{place}]" for place, name in enumerate(_names(function), 1)}
    body = _body(writer, function, put)
    lists = ", ".join(writer.text(items) for items in call.expressions[:2])
    return f"list_transform(inner_zipped({lists}), lambda {pair}: {body})"


def _arrays_zip(writer: Generator, call: exp.Anonymous) -> str:
    """Returns the DuckDB SQL of ``arrays_zip(a, b, …)``: structs with the members of one place.
    A field is named by the column that an argument is, or else by its place."""
    writer.count(call, 1, 100)
    names, given = [], []
    for place, argument in enumerate(call.expressions):
        if isinstance(argument, exp.Null):
            raise StatementRefused("arrays_zip() takes lists.")
        named = isinstance(argument, exp.Column | exp.Dot)
        names.append(argument.name if named else str(place))
        given.append(f"a{place} := {writer.text(argument)}")
    if len({name.lower() for name in names}) < len(names):
        raise StatementRefused("The lists of arrays_zip() have different names here.")
    lists = [f"inner_lists.a{place}" for place in range(len(names))]
    fields = ", ".join(
        f"{exp.to_identifier(name, quoted=True).sql('duckdb')} := inner_row[{place}]"
        for place, name in enumerate(names, 1)
    )
    rows = f"list_transform(list_zip({', '.join(lists)}), lambda inner_row: struct_pack({fields}))"
    missing = " OR ".join(f"{name} IS NULL" for name in lists)
    return (
        f"list_transform([struct_pack({', '.join(given)})], lambda inner_lists: "
        f"CASE WHEN {missing} THEN NULL ELSE {rows} END)[1]"
    )


def _of_map(key: str | None, value: str | None) -> Callable[[Generator, exp.Anonymous], str]:
    """Returns a translator for a function that makes a map from the entries of another, for example
    ``transform_values(m, (k, v) -> v + 1)``. ``key`` or ``value`` names the field of an entry; it
    is None if the lambda computes it. If both are given, the lambda filters the entries, as in
    ``map_filter``."""

    def written(writer: Generator, call: exp.Anonymous) -> str:
        writer.count(call, 2, 2)
        function = _lambda(call, 1, 2, 2)
        names = _names(function)
        entry = f"inner_e{_depth(function)}"
        made = _body(writer, function, {names[0]: f"{entry}.key", names[1]: f"{entry}.value"})
        entries = f"map_entries({writer.text(call.expressions[0])})"
        if key and value:
            return f"map_from_entries(list_filter({entries}, lambda {entry}: {made}))"
        parts = [f"{entry}.{field}" if field else made for field in (key, value)]
        pair = f"struct_pack(key := {parts[0]}, value := {parts[1]})"
        return f"map_from_entries(list_transform({entries}, lambda {entry}: {pair}))"

    return written


def _array(writer: Generator, call: exp.Anonymous) -> str:
    return f"[{', '.join(writer.text(expression) for expression in call.expressions)}]"


def _map(writer: Generator, call: exp.Anonymous) -> str:
    if len(call.expressions) % 2:
        raise StatementRefused("map() takes keys and values in turn.")
    given = [writer.text(expression) for expression in call.expressions]
    return f"map([{', '.join(given[::2])}], [{', '.join(given[1::2])}])"


def _struct(writer: Generator, call: exp.Anonymous) -> str:
    fields = []
    for position, field in enumerate(call.expressions):
        value = field.this if isinstance(field, exp.Alias) else field
        named = isinstance(field, exp.Alias | exp.Column)
        fields.append((field.alias_or_name if named else f"col{position + 1}", value))
    return _packed(writer, fields)


def _named_struct(writer: Generator, call: exp.Anonymous) -> str:
    if len(call.expressions) % 2:
        raise StatementRefused("named_struct() takes names and values in turn.")
    names = [literal(expression, "The name of a field") for expression in call.expressions[::2]]
    return _packed(writer, list(zip(names, call.expressions[1::2], strict=True)))


def _packed(writer: Generator, fields: list[tuple[str, exp.Expr]]) -> str:
    if not fields:
        raise StatementRefused("A struct has at least one field.")
    return (
        "struct_pack("
        + ", ".join(
            f"{exp.to_identifier(name, quoted=True).sql('duckdb')} := {writer.text(value)}"
            for name, value in fields
        )
        + ")"
    )


def _round(writer: Generator, call: exp.Anonymous) -> str:
    writer.count(call, 1, 2)
    value = writer.text(call.expressions[0])
    places = writer.text(call.expressions[1]) if len(call.expressions) > 1 else "0"
    return writer.once(f"inner_round({{0}}, {places})", value)


def _reverse(writer: Generator, call: exp.Anonymous) -> str:
    writer.count(call, 1, 1)
    (value,) = call.expressions
    return f"{'list_reverse' if is_list(value) else 'inner_reverse'}({writer.text(value)})"


def _array_sort(writer: Generator, call: exp.Anonymous) -> str | None:
    """Returns the DuckDB SQL of ``array_sort(list, (a, b) -> …)``: each member is put behind those
    that the lambda says are not after it."""
    writer.count(call, 1, 2)
    if len(call.expressions) == 1:
        return None
    function = _lambda(call, 1, 2, 2)
    depth = _depth(function)
    done, one, member = f"inner_d{depth}", f"inner_o{depth}", f"inner_m{depth}"
    first, second = _names(function)
    body = _body(writer, function, {first: member, second: f"{one}[1]"})
    before = f"len(list_filter({done}, lambda {member}: inner_compared({body}) <= 0))"
    items = writer.text(call.expressions[0])
    step = (
        f"list_transform([{before}], lambda inner_n{depth}: list_concat(list_concat("
        f"{done}[1:inner_n{depth}], {one}), {done}[inner_n{depth} + 1:]))[1]"
    )
    given = f"inner_l{depth}"
    lists = f"list_transform({given}, lambda {member}: [{member}])"
    return (
        f"list_transform([{items}], lambda {given}: inner_sorted({given}, "
        f"list_reduce({lists}, lambda {done}, {one}: {step})))[1]"
    )


SPECIAL: Final[dict[str, Callable[[Generator, exp.Anonymous], str | None]]] = {
    "array": _array,
    "map": _map,
    "struct": _struct,
    "named_struct": _named_struct,
    "transform": _of_list("list_transform"),
    "filter": _of_list("list_filter"),
    "exists": _flags("inner_any", "false"),
    "forall": _flags("inner_all", "true"),
    "get": _get,
    "aggregate": _aggregate,
    "reduce": _aggregate,
    "map_filter": _of_map("key", "value"),
    "transform_values": _of_map("key", None),
    "transform_keys": _of_map(None, "value"),
    "zip_with": _zip_with,
    "arrays_zip": _arrays_zip,
    "array_sort": _array_sort,
    "from_json": from_json,
    "schema_of_json": schema_of_json,
    "round": _round,
    "reverse": _reverse,
}
