"""Writes an expression as Databricks does in the name of a column without an alias: ``count(1)``,
``(a + b)``, ``CASE WHEN … END``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from sqlglot import exp

from mltables.dialect.syntax_nodes import find_all

_IN_CAPITALS: Final = """
acos acosh asin asinh atan atan2 atanh cbrt ceil cos cosh cot degrees dense_rank e exp expm1 floor
hypot log log10 log1p log2 percent_rank pi power radians rank regexp_like rlike regexp signum sin
sinh sqrt tan tanh
"""
_FIRST_OR_LAST: Final = frozenset(("first", "last", "any_value", "first_value", "last_value"))
_CAPITALS: Final = frozenset(_IN_CAPITALS.split())
"""Functions that Databricks writes in capitals."""
_RENAMED: Final = {
    "array_agg": "collect_list", "random": "rand", "date_sub": "date_sub", "dateadd": "date_add",
    "approx_count_distinct": "approx_count_distinct", "regexp_like": "regexp_like",
    "regexp": "regexp", "now": "now", "curdate": "current_date", "iff": "if",
    "sec": "SEC", "csc": "CSC",
}  # fmt: skip
_DEFAULTS: Final = {
    ("round", 1): ", 0", ("split", 2): ", -1", ("locate", 2): ", 1", ("position", 2): ", 1",
    ("replace", 2): ", ", ("lpad", 2): ",  ", ("rpad", 2): ",  ", ("regexp_replace", 3): ", 1",
    ("regexp_extract", 2): ", 1", ("regexp_extract_all", 2): ", 1", ("sort_array", 1): ", true",
    ("months_between", 2): ", true", ("from_unixtime", 1): ", yyyy-MM-dd HH:mm:ss",
    ("unix_timestamp", 1): ", yyyy-MM-dd HH:mm:ss", ("percentile", 2): ", 1",
    ("to_unix_timestamp", 1): ", yyyy-MM-dd HH:mm:ss", ("percentile_approx", 2): ", 10000",
    ("approx_percentile", 2): ", 10000", ("substring", 2): ", 2147483647", ("lag", 1): ", 1, NULL",
    ("lag", 2): ", NULL", ("lead", 1): ", 1, NULL", ("lead", 2): ", NULL",
    ("bround", 1): ", 0", ("str_to_map", 1): ", ,, :", ("str_to_map", 2): ", :",
    ("overlay", 3): ", -1", ("mask", 1): ", X, x, n, NULL", ("regexp_instr", 2): ", 0",
}  # fmt: skip
"""Text that Databricks adds to the name for omitted arguments, by function and number of
arguments."""
_SIGNS: Final[dict[type[exp.Expr], str]] = {
    exp.Mul: "*", exp.Div: "/", exp.Mod: "%", exp.IntDiv: "div",
    exp.EQ: "=", exp.GT: ">", exp.GTE: ">=", exp.LT: "<", exp.LTE: "<=", exp.NullSafeEQ: "<=>",
    exp.And: "AND", exp.Or: "OR", exp.BitwiseAnd: "&", exp.BitwiseOr: "|", exp.BitwiseXor: "^",
}  # fmt: skip


def databricks_name(node: Any) -> str:
    """Returns the name that Databricks gives to a column of an SQL query with this expression and
    without an alias."""
    if node is None:
        return ""
    sign = _SIGNS.get(type(node))
    if sign:
        return f"({databricks_name(node.this)} {sign} {databricks_name(node.expression)})"
    writer = _WRITERS.get(type(node))
    if writer:
        return writer(node)
    return str(node.sql("databricks", comments=False))


def _listed(nodes: list[Any]) -> str:
    return ", ".join(databricks_name(node) for node in nodes)


def _literal(node: exp.Literal) -> str:
    if not node.is_string and "e" in node.name.lower():
        return double(float(node.name))
    return str(node.this)


def double(value: float) -> str:
    """Returns a double as Java prints it, such as ``1.0E10``."""
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    mantissa, _, exponent = f"{value:.17e}".partition("e")
    mantissa = next(
        text
        for digits in range(1, 18)
        if float(f"{(text := f'{float(mantissa):.{digits}f}')}e{exponent}") == value or digits == 17
    )
    return f"{mantissa}E{int(exponent)}"


def _time(text: str) -> str:
    """Returns a time such as ``2026-01-05 00:00:00`` without trailing zeros of a fraction."""
    return text.rstrip("0").rstrip(".") if "." in text else text


def _call(node: exp.Anonymous) -> str:
    written = node.name.lower()
    given = node.expressions
    if written in {"date", "timestamp", "int", "string", "double", "bigint", "boolean", "float"}:
        return _listed(given)
    if written == "count" and len(given) == 1 and isinstance(given[0], exp.Star):
        return "count(1)"
    if written == "from_json" and len(given) == 2:
        return "entries" if _is_map_schema(given[1]) else f"from_json({databricks_name(given[0])})"
    if written == "window":
        return written
    if given and isinstance(given[0], exp.Distinct):
        return f"{written}(DISTINCT {_listed(given[0].expressions)})"
    if written in {"isnull", "isnotnull"} and len(given) == 1:
        return f"({databricks_name(given[0])} IS {'NOT ' if written == 'isnotnull' else ''}NULL)"
    if written in _WITH_UNIT and len(given) == 3:
        return f"{_WITH_UNIT[written]}({given[0].name.upper()}, {_listed(given[1:])})"
    if written in {"ltrim", "rtrim"} and len(given) == 2:
        side = "LEADING" if written == "ltrim" else "TRAILING"
        return f"TRIM({side} {databricks_name(given[0])} FROM {databricks_name(given[1])})"
    if written in _FIRST_OR_LAST and len(given) == 2:
        given = given[:1]
    if written == "positive":
        return f"(+ {databricks_name(given[0])})"
    if written == "log" and len(given) == 1:
        return f"LOG(E(), {databricks_name(given[0])})"
    if written == "like":
        return f"{databricks_name(given[0])} LIKE {databricks_name(given[1])}"
    name = _RENAMED.get(written, written)
    name = name.upper() if name in _CAPITALS else name
    return f"{name}({_listed(given)}{_DEFAULTS.get((written, len(given)), '')})"


def _is_map_schema(node: exp.Expr) -> bool:
    return node.name.strip().lower().startswith("map")


def _cast(node: exp.Cast) -> str:
    kind = node.to.sql("databricks").replace(", ", ",")
    if isinstance(node.this, exp.Literal) and not node.meta.get("written"):
        if node.this.is_string and not node.to.is_type(exp.DType.DECIMAL):
            return f"{kind} '{_time(node.this.name)}'"
        if not node.this.is_string and node.to.is_type(exp.DType.DOUBLE, exp.DType.FLOAT):
            return double(float(node.this.name))
        return str(node.this.name)
    prefix = "TRY_CAST" if isinstance(node, exp.TryCast) else "CAST"
    return f"{prefix}({databricks_name(node.this)} AS {kind})"


def _case(node: exp.Case) -> str:
    text = "CASE"
    for arg in node.args["ifs"]:
        condition = databricks_name(arg.this)
        if node.this:
            condition = f"({databricks_name(node.this)} = {condition})"
        text += f" WHEN {condition} THEN {databricks_name(arg.args['true'])}"
    if node.args.get("default") is not None:
        text += f" ELSE {databricks_name(node.args['default'])}"
    return text + " END"


def _if(node: exp.If) -> str:
    condition, result = databricks_name(node.this), databricks_name(node.args["true"])
    otherwise = databricks_name(node.args.get("false")) or "NULL"
    return f"(IF({condition}, {result}, {otherwise}))"


def _not(node: exp.Not) -> str:
    if isinstance(node.this, exp.Is):
        return f"({databricks_name(node.this.this)} IS NOT {databricks_name(node.this.expression)})"
    return f"(NOT {databricks_name(node.this)})"


def _in(node: exp.In) -> str:
    return f"({databricks_name(node.this)} IN ({_listed(node.expressions)}))"


def _between(node: exp.Between) -> str:
    return f"between({_listed([node.this, node.args['low'], node.args['high']])})"


def _neq(node: exp.NEQ) -> str:
    return f"(NOT ({databricks_name(node.this)} = {databricks_name(node.expression)}))"


def _extract(node: exp.Extract) -> str:
    return f"extract({node.name} FROM {databricks_name(node.expression)})"


def _substring(node: exp.Substring) -> str:
    parts = [node.this, node.args.get("start"), node.args.get("length")]
    more = "" if parts[2] else ", 2147483647"
    return f"substring({_listed([part for part in parts if part])}{more})"


def _trim(node: exp.Trim) -> str:
    if not node.expression:
        return f"trim({databricks_name(node.this)})"
    side = node.args.get("position") or "BOTH"
    return f"TRIM({side} {databricks_name(node.expression)} FROM {databricks_name(node.this)})"


def _position(node: exp.StrPosition) -> str:
    start = node.args.get("position")
    at = databricks_name(start) if start else "1"
    return f"position({databricks_name(node.args['substr'])}, {databricks_name(node.this)}, {at})"


def _interval(node: exp.Interval) -> str:
    unit = node.args.get("unit")
    if isinstance(unit, exp.IntervalSpan):
        units = (unit.args[key].name.upper() for key in ("this", "expression"))
        return f"INTERVAL '{node.name}' {' TO '.join(units)}"
    return f"INTERVAL '{node.name}' {unit.name.upper().rstrip('S') if unit else ''}".strip()


def _sum(node: exp.Binary) -> str:
    sign = "+" if isinstance(node, exp.Add) else "-"
    if isinstance(node.expression, exp.Interval):
        return f"{databricks_name(node.this)} {sign} {databricks_name(node.expression)}"
    return f"({databricks_name(node.this)} {sign} {databricks_name(node.expression)})"


def _negative(node: exp.Neg) -> str:
    value = node.this
    is_number = isinstance(value, exp.Literal) or (
        isinstance(value, exp.Cast) and not value.meta.get("written")
    )
    return f"-{databricks_name(value)}" if is_number else f"(- {databricks_name(value)})"


def _filter(node: exp.Filter) -> str:
    return f"{databricks_name(node.this)} FILTER (WHERE {databricks_name(node.expression.this)})"


def _ordered(node: exp.Ordered) -> str:
    direction = "DESC" if node.args.get("desc") else "ASC"
    nulls = "FIRST" if node.args.get("nulls_first") else "LAST"
    return f"{databricks_name(node.this)} {direction} NULLS {nulls}"


def _window(node: exp.Window) -> str:
    texts = []
    if node.args.get("partition_by"):
        texts.append(f"PARTITION BY {_listed(node.args['partition_by'])}")
    order = node.args.get("order")
    if order:
        texts.append(f"ORDER BY {_listed(order.expressions)}")
    spec = node.args.get("spec")
    if spec:
        ends = [_end(spec, side) for side in ("start", "end")]
        texts.append(f"{spec.args.get('kind')} BETWEEN {ends[0]} AND {ends[1] or 'CURRENT ROW'}")
    elif order:
        texts.append(_frame(node.this))
    else:
        texts.append("ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING")
    return f"{databricks_name(node.this)} OVER ({' '.join(texts)})"


def _end(spec: exp.WindowSpec, side: str) -> str:
    """Returns the text of one end of a frame, such as ``1 PRECEDING``."""
    value = spec.args.get(side)
    text = databricks_name(value) if isinstance(value, exp.Expr) else value or ""
    return f"{text} {spec.args.get(f'{side}_side') or ''}".strip()


def _frame(call: Any) -> str:
    """Returns the default frame of a window, as text."""
    while isinstance(call, exp.IgnoreNulls | exp.RespectNulls | exp.Filter):
        call = call.this
    name = call.name.lower() if isinstance(call, exp.Anonymous) else ""
    if name in {"lag", "lead"}:
        offset = databricks_name(call.expressions[1]) if len(call.expressions) > 1 else "1"
        at = f"{'-' if name == 'lag' else ''}{offset} FOLLOWING"
        return f"ROWS BETWEEN {at} AND {at}"
    kind = "ROWS" if name in _BY_ROW else "RANGE"
    return f"{kind} BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"


_WITH_UNIT: Final = {
    "datediff": "timestampdiff", "date_diff": "timestampdiff", "timestampdiff": "timestampdiff",
    "dateadd": "timestampadd", "date_add": "timestampadd", "timestampadd": "timestampadd",
}  # fmt: skip
_BY_ROW: Final = frozenset(("row_number", "rank", "dense_rank", "ntile", "percent_rank"))


def _within(node: exp.WithinGroup) -> str:
    ordered = node.expression.expressions
    call = databricks_name(node.this)
    if call.startswith(("listagg", "string_agg")):
        return (
            f"{call.replace('string_agg', 'listagg', 1)} WITHIN GROUP (ORDER BY {_listed(ordered)})"
        )
    order = ", ".join(
        databricks_name(ordering.this) + (" DESC" if ordering.args.get("desc") else "")
        for ordering in ordered
    )
    return f"{call} WITHIN GROUP (ORDER BY {order})"


def _bracket(node: exp.Bracket) -> str:
    return f"{databricks_name(node.this)}[{_listed(node.expressions)}]"


def _like(node: exp.Binary, escape: str = "") -> str:
    value, pattern = databricks_name(node.this), node.expression
    if isinstance(pattern, exp.Any | exp.All):
        text = f"like{'any' if isinstance(pattern, exp.Any) else 'all'}({value})"
    elif isinstance(node, exp.ILike):
        text = f"ilike({value}, {databricks_name(pattern)})"
    elif isinstance(node, exp.RegexpLike):
        text = f"RLIKE({value}, {databricks_name(pattern)})"
    else:
        text = f"{value} LIKE {databricks_name(pattern)}{escape}"
    return f"(NOT {text})" if node.args.get("negate") else text


def _escape(node: exp.Escape) -> str:
    return _like(node.this, f" ESCAPE '{databricks_name(node.expression)}'")


def _lambda(node: exp.Lambda) -> str:
    names = {expression.name for expression in node.expressions}
    body = node.this.copy()
    holder = exp.Paren(this=body)
    for identifier in list(find_all(holder, exp.Identifier)):
        if identifier.name in names:
            identifier.replace(exp.Var(this="namedlambdavariable()"))
    variables = ", ".join("namedlambdavariable()" for _ in node.expressions)
    return f"lambdafunction({databricks_name(holder.this)}, {variables})"


_WRITERS: Final[dict[type[exp.Expr], Callable[[Any], str]]] = {
    exp.Literal: _literal,
    exp.Anonymous: _call,
    exp.Cast: _cast,
    exp.TryCast: _cast,
    exp.Case: _case,
    exp.If: _if,
    exp.Not: _not,
    exp.In: _in,
    exp.Between: _between,
    exp.NEQ: _neq,
    exp.Extract: _extract,
    exp.Substring: _substring,
    exp.Filter: _filter,
    exp.Ordered: _ordered,
    exp.Window: _window,
    exp.WithinGroup: _within,
    exp.Bracket: _bracket,
    exp.Like: _like,
    exp.ILike: _like,
    exp.RegexpLike: _like,
    exp.Escape: _escape,
    exp.Add: _sum,
    exp.Sub: _sum,
    exp.Trim: _trim,
    exp.StrPosition: _position,
    exp.Interval: _interval,
    exp.IgnoreNulls: lambda node: databricks_name(node.this),
    exp.RespectNulls: lambda node: databricks_name(node.this),
    exp.Concat: lambda node: "".join(
        databricks_name(expression) for expression in node.expressions
    ),
    exp.RawString: lambda node: str(node.this),
    exp.Var: lambda node: str(node.this),
    exp.Lambda: _lambda,
    exp.Paren: lambda node: databricks_name(node.this),
    exp.Neg: _negative,
    exp.Column: lambda node: node.name,
    exp.Identifier: lambda node: node.name,
    exp.Dot: lambda node: (
        f"{databricks_name(node.this)}.{databricks_name(node.expression)}"
        if not isinstance(node.this, exp.Column)
        else node.expression.name
    ),
    exp.Boolean: lambda node: "true" if node.this else "false",
    exp.Null: lambda _node: "NULL",
    exp.Is: lambda node: f"({databricks_name(node.this)} IS {databricks_name(node.expression)})",
    exp.DPipe: lambda node: (
        f"concat({databricks_name(node.this)}, {databricks_name(node.expression)})"
    ),
    exp.CurrentDate: lambda _node: "current_date()",
    exp.CurrentTimestamp: lambda _node: "current_timestamp()",
    exp.Alias: lambda node: f"{databricks_name(node.this)} AS {node.alias}",
    exp.Subquery: lambda node: f"scalarsubquery({databricks_name(node.this)})",
    exp.Select: lambda _node: "",
    exp.Exists: lambda _node: "exists()",
    exp.Placeholder: lambda node: f":{node.name}",
}
