"""Writes a tree of ``reader.Reader`` as DuckDB's SQL, with Databricks' meaning.

Of calls, operators and casts nothing is left to sqlglot's own translation.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final

from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.generators.duckdb import DuckDBGenerator

from mltables.dialect import aggregates, functions, lambdas, operands, relations, rows, texts, units
from mltables.dialect.refusal import Refused

LONGEST: Final = 2_000_000
"""Characters that a statement may become."""

_CASTS: Final = {
    exp.DType.TINYINT: "inner_tinyint({0})",
    exp.DType.SMALLINT: "inner_smallint({0})",
    exp.DType.INT: "inner_int({0})",
    exp.DType.BIGINT: "inner_bigint({0})",
    exp.DType.FLOAT: "CAST(inner_double({0}) AS FLOAT)",
    exp.DType.DOUBLE: "inner_double({0})",
    exp.DType.TEXT: "spark_string({0})",
    exp.DType.BOOLEAN: "inner_boolean({0})",
    exp.DType.DATE: "spark_date({0})",
    exp.DType.TIMESTAMPTZ: "spark_timestamp({0})",
}
_TRIED: Final = {
    **dict.fromkeys(
        (exp.DType.TINYINT, exp.DType.SMALLINT, exp.DType.INT, exp.DType.BIGINT),
        "inner_try_integer",
    ),
    **dict.fromkeys((exp.DType.FLOAT, exp.DType.DOUBLE), "inner_try_double"),
    exp.DType.DECIMAL: "inner_try_decimal",
    exp.DType.BOOLEAN: "inner_try_boolean",
    exp.DType.DATE: "inner_try_date",
    exp.DType.TIMESTAMPTZ: "inner_try_time",
}
_NULLS: Final = {exp.DType.TIMESTAMPTZ: "TIMESTAMPTZ", exp.DType.TEXT: "VARCHAR"}
_SHORT: Final = 60
"""Characters of an argument that may be repeated."""
_DAYS: Final = frozenset(("day", "week", "month", "quarter", "year"))


class Generator(DuckDBGenerator):
    """One statement."""

    named = 0
    """How many values have names."""

    def text(self, node: exp.Expr) -> str:
        said = str(self.sql(node))
        if len(said) > LONGEST:
            raise Refused("The statement is too long.")
        return said

    def grouped(self, node: exp.Expr) -> str:
        """An operand, in parentheses where it is an expression of its own."""
        said = self.text(node)
        plain = isinstance(
            node, exp.Column | exp.Literal | exp.Paren | exp.Anonymous | exp.Cast | exp.Placeholder
        )
        return said if plain else f"({said})"

    # Calls

    def anonymous_sql(self, expression: exp.Anonymous) -> str:
        name = expression.name.lower()
        if name in aggregates.AGGREGATES or name in aggregates.WITHIN:
            return rows.aggregate(self, expression, None)
        if name in functions.WINDOW:
            raise Refused(f"{expression.name}() needs OVER.")
        if name in functions.GENERATORS:
            raise Refused(f"{expression.name}() stands alone in SELECT, or in LATERAL VIEW.")
        arguments = expression.expressions
        if name in functions.CASTS:
            self.count(expression, 1, 1)
            return self.cast(arguments[0], exp.DataType.build(functions.CASTS[name], "databricks"))
        special = texts.SPECIAL.get(name) or units.SPECIAL.get(name) or lambdas.SPECIAL.get(name)
        if special and (said := special(self, expression)) is not None:
            return said
        simple = functions.SIMPLE.get(name)
        if simple:
            self.count(expression, simple.least, simple.most)
            given = [self.text(one) for one in arguments]
            if simple.template is None:
                return f"{name}({', '.join(given)})"
            return f"({simple.template.format(*given)})"
        named = functions.parameters(name)
        if named is None:
            raise Refused(f"The function {expression.name}() does not exist here.")
        return f"spark_{name}({', '.join(self.arguments(arguments, named))})"

    def arguments(self, given: list[exp.Expr], named: tuple[str, ...]) -> list[str]:
        """Arguments of a macro, cast where the name of the parameter says so."""
        said = []
        for place, one in enumerate(given):
            name = named[place] if place < len(named) else ""
            text = self.text(one)
            if name.endswith("day"):
                text = self.null_safe(one, "DATE", self.once("spark_date({0})", text))
            elif name.endswith("time"):
                text = self.null_safe(one, "TIMESTAMPTZ", self.once("spark_timestamp({0})", text))
            said.append(text)
        return said

    def once(self, template: str, *given: str) -> str:
        """A template that repeats its arguments: each long one is computed once and named, for
        else the text of nested calls would grow with each level."""
        if all(len(one) <= _SHORT for one in given):
            return template.format(*given)
        names, bound = [], []
        for one in given:
            name = one
            if "(" in one:
                self.named += 1
                name = f"inner_v{self.named}"
                bound.append((name, one))
            names.append(name)
        said = template.format(*names)
        for name, one in reversed(bound):
            said = f"list_transform([{one}], lambda {name}: {said})[1]"
        return said

    def null_safe(self, node: exp.Expr, kind: str, otherwise: str) -> str:
        return f"CAST(NULL AS {kind})" if isinstance(node, exp.Null) else otherwise

    def count(self, call: exp.Anonymous, least: int, most: int) -> None:
        if not least <= len(call.expressions) <= most:
            wanted = str(least) if least == most else f"{least} to {most}"
            raise Refused(f"{call.name}() takes {wanted} arguments, not {len(call.expressions)}.")

    # Aggregates and windows

    def _around(self, expression: exp.Expr) -> str:
        call: Any = expression
        while isinstance(
            call, exp.Window | exp.Filter | exp.WithinGroup | exp.IgnoreNulls | exp.RespectNulls
        ):
            call = call.this
        if not isinstance(call, exp.Anonymous):
            raise Refused("OVER, FILTER and WITHIN GROUP follow an aggregate or a window function.")
        return rows.aggregate(self, call, expression)

    def window_sql(self, expression: exp.Window) -> str:
        # A named window, as WINDOW w AS (…) lists it, has no function.
        if isinstance(expression.this, exp.Identifier) or expression.this is None:
            return str(super().window_sql(expression))
        return self._around(expression)

    def filter_sql(self, expression: exp.Filter) -> str:
        return self._around(expression)

    def withingroup_sql(self, expression: exp.WithinGroup) -> str:
        return self._around(expression)

    def ignorenulls_sql(self, expression: exp.IgnoreNulls) -> str:
        return self._around(expression)

    def respectnulls_sql(self, expression: exp.RespectNulls) -> str:
        return self._around(expression)

    def over(self, window: exp.Window, inside: str) -> str:
        """``inside OVER (…)`` of a window."""
        plain = window.copy()
        plain.set("this", exp.Var(this=inside))
        return str(super().window_sql(plain))

    def duck_sql(self, expression: relations.Duck) -> str:
        return str(expression.this).format(*(self.text(one) for one in expression.expressions))

    # Casts

    def cast_sql(self, expression: exp.Cast, _safe_prefix: str | None = None) -> str:
        return self.cast(expression.this, expression.to)

    def trycast_sql(self, expression: exp.TryCast) -> str:
        value, to = expression.this, expression.to
        if isinstance(value, exp.Null):
            return self.cast(value, to)
        if to.is_type(exp.DType.TEXT):
            return self.once("spark_string({0})", self.text(value))
        if to.this not in _TRIED:
            raise Refused(f"TRY_CAST to {to.sql('databricks')} does not exist here.")
        clean = self.once(f"{_TRIED[to.this]}({{0}})", self.text(value))
        return f"TRY_CAST({clean} AS {to.sql('duckdb')})"

    def cast(self, value: exp.Expr, to: exp.DataType) -> str:
        if to.is_type(exp.DType.DECIMAL):
            sizes = ", ".join(one.this.name for one in to.expressions) or "10, 0"
            if isinstance(value, exp.Null):
                return f"CAST(NULL AS DECIMAL({sizes}))"
            return self.once(
                f"CAST(inner_decimal_text({{0}}) AS DECIMAL({sizes}))", self.text(value)
            )
        if to.this not in _CASTS or to.expressions:
            raise Refused(f"CAST to {to.sql('databricks')} does not exist here.")
        if isinstance(value, exp.Null):
            return f"CAST(NULL AS {_NULLS.get(to.this, to.this.value)})"
        return self.once(_CASTS[to.this], self.text(value))

    # Operators

    def div_sql(self, expression: exp.Div) -> str:
        a, b = expression.this, expression.expression
        digits = ", ".join(operands.digits(one) for one in (a, b))
        return self.once(f"inner_divide({{0}}, {{1}}, {digits})", self.text(a), self.text(b))

    def intdiv_sql(self, expression: exp.IntDiv) -> str:
        return f"spark_div({self.text(expression.this)}, {self.text(expression.expression)})"

    def mod_sql(self, expression: exp.Mod) -> str:
        return f"({self.grouped(expression.this)} % {self.grouped(expression.expression)})"

    def sub_sql(self, expression: exp.Sub) -> str:
        return self._plus_or_minus(expression, "-")

    def add_sql(self, expression: exp.Add) -> str:
        return self._plus_or_minus(expression, "+")

    def _plus_or_minus(self, expression: exp.Binary, sign: str) -> str:
        a, b = expression.this, expression.expression
        if isinstance(a, exp.Interval) and sign == "+":
            a, b = b, a
        if isinstance(b, exp.Interval):
            if operands.is_date(a):
                # Databricks keeps a date unless hours are added.
                kind = "DATE" if units.of_interval(b) in _DAYS else "TIMESTAMPTZ"
                return f"CAST({self.grouped(a)} {sign} {self.text(b)} AS {kind})"
            if operands.may_be_date(a):
                return f"inner_no_date({self.text(a)}) {sign} {self.text(b)}"
        elif sign == "-" and not operands.is_number(a) and not operands.is_number(b):
            return self.once("inner_minus({0}, {1})", self.text(a), self.text(b))
        return f"{self.grouped(a)} {sign} {self.grouped(b)}"

    def interval_sql(self, expression: exp.Interval) -> str:
        return units.interval(self, expression)

    def extract_sql(self, expression: exp.Extract) -> str:
        return units.extract(self, expression.name, expression.expression)

    def bracket_sql(self, expression: exp.Bracket) -> str:
        if len(expression.expressions) != 1:
            raise Refused("An index is one value.")
        value, (key,) = self.grouped(expression.this), expression.expressions
        is_map = relations.is_map(expression.this)
        if is_map or (isinstance(key, exp.Literal) and key.is_string):
            return f"{value}[{self.text(key)}]"
        return f"inner_item({value}, {self.text(key)}, cardinality({value}))"

    def like_sql(self, expression: exp.Like) -> str:
        return texts.like(self, expression, "like_escape")

    def ilike_sql(self, expression: exp.ILike) -> str:
        return texts.like(self, expression, "ilike_escape")

    def escape_sql(self, expression: exp.Escape) -> str:
        return texts.escaped(self, expression)

    def regexplike_sql(self, expression: exp.RegexpLike) -> str:
        pattern = texts.pattern(self, expression.expression)
        said = f"regexp_matches({self.text(expression.this)}, {pattern})"
        return f"(NOT {said})" if expression.args.get("negate") else said

    def concat_sql(self, expression: exp.Concat) -> str:
        # Of literals that stand side by side.
        return "(" + " || ".join(self.text(one) for one in expression.expressions) + ")"

    def rawstring_sql(self, expression: exp.RawString) -> str:
        return texts.quoted(str(expression.this))

    def substring_sql(self, expression: exp.Substring) -> str:
        parts = (expression.this, expression.args.get("start"), expression.args.get("length"))
        return f"spark_substring({', '.join(self.text(one) for one in parts if one)})"

    def strposition_sql(self, expression: exp.StrPosition) -> str:
        parts = (expression.args["substr"], expression.this, expression.args.get("position"))
        return f"spark_position({', '.join(self.text(one) for one in parts if one)})"

    def trim_sql(self, expression: exp.Trim) -> str:
        side = (expression.args.get("position") or "BOTH").lower()
        name = {"both": "trim", "leading": "ltrim", "trailing": "rtrim"}[side]
        characters = expression.expression
        shown = self.text(characters) if characters else "' '"
        return f"{name}({self.text(expression.this)}, {shown})"

    def dpipe_sql(self, expression: exp.DPipe) -> str:
        return texts.concatenation(self, [expression.this, expression.expression])

    def currentdate_sql(self, _expression: exp.CurrentDate) -> str:
        return "current_date"

    def currenttimestamp_sql(self, _expression: exp.CurrentTimestamp) -> str:
        return "now()"

    def literal_sql(self, expression: exp.Literal) -> str:
        if expression.is_string:
            return "'" + str(expression.this).replace("'", "''") + "'"
        return str(super().literal_sql(expression))

    # Comparisons

    def eq_sql(self, expression: exp.EQ) -> str:
        return self._compared(expression, "=")

    def neq_sql(self, expression: exp.NEQ) -> str:
        return self._compared(expression, "<>")

    def gt_sql(self, expression: exp.GT) -> str:
        return self._compared(expression, ">")

    def gte_sql(self, expression: exp.GTE) -> str:
        return self._compared(expression, ">=")

    def lt_sql(self, expression: exp.LT) -> str:
        return self._compared(expression, "<")

    def lte_sql(self, expression: exp.LTE) -> str:
        return self._compared(expression, "<=")

    def nullsafeeq_sql(self, expression: exp.NullSafeEQ) -> str:
        return self._compared(expression, "IS NOT DISTINCT FROM")

    def _compared(self, expression: exp.Binary, sign: str) -> str:
        a, b = expression.this, expression.expression
        return f"{self.comparable(a, b)} {sign} {self.comparable(b, a)}"

    def comparable(self, one: exp.Expr, other: exp.Expr) -> str:
        """A side of a comparison: a number if the other is one, for DuckDB compares texts."""
        if isinstance(other, exp.Null) or isinstance(one, exp.Null) or operands.is_number(one):
            return self.grouped(one)
        if operands.is_number(other):
            if isinstance(one, exp.Literal) and one.is_string:
                return f"inner_double_of({self.text(one)})"
            if isinstance(one, exp.Column | exp.Bracket | exp.Placeholder):
                return f"inner_as_number({self.text(one)})"
        return self.grouped(one)

    def in_sql(self, expression: exp.In) -> str:
        members = expression.expressions
        if not members or not any(operands.is_number(one) for one in members):
            return str(super().in_sql(expression))
        value = self.comparable(
            expression.this, next(one for one in members if operands.is_number(one))
        )
        return f"{value} IN ({', '.join(self.text(one) for one in members)})"

    def between_sql(self, expression: exp.Between) -> str:
        low, high = expression.args["low"], expression.args["high"]
        value = self.comparable(expression.this, low if operands.is_number(low) else high)
        return f"{value} BETWEEN {self.grouped(low)} AND {self.grouped(high)}"


_OWN: Final = frozenset(name for name in vars(Generator) if name.endswith("_sql"))


class Writer(DuckDB):
    """DuckDB's dialect, written by ``Generator``."""

    class Generator(Generator):
        TRANSFORMS: ClassVar = {
            kind: transform
            for kind, transform in Generator.TRANSFORMS.items()
            if f"{kind.key}_sql" not in _OWN
        } | {relations.Duck: lambda self, node: self.duck_sql(node)}


def write(tree: exp.Expr) -> str:
    said: str = Writer().generate(tree, copy=False, comments=False)
    return said
