"""Generates DuckDB SQL with Databricks' semantics from the syntax tree of ``parser.Reader``.

sqlglot's own translation is not used for calls, operators and casts.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final

from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.generators.duckdb import DuckDBGenerator

from mltables.dialect import (
    aggregate_calls,
    aggregate_functions,
    cast_templates,
    collection_functions,
    comparisons,
    differences,
    function_list,
    grouping,
    map_lookups,
    operand_types,
    row_generators,
    text_functions,
    time_functions,
    whole_numbers,
)
from mltables.dialect.refusal import StatementRefused

LONGEST: Final = 2_000_000
"""Most characters of the generated SQL."""

_SHORT: Final = 60
"""Characters of the longest argument that a template may repeat."""
_LONGER: Final = 160
"""Characters of the longest argument that a template may repeat if it is a single call without
nested calls."""


class Generator(DuckDBGenerator):
    """Generates DuckDB SQL from the syntax tree of one statement in Databricks' SQL."""

    named = 0
    """Number of calls of :meth:`bound`, which numbers its variables."""

    written = 0
    """Number of characters that :meth:`text` has returned: each part once per level of nesting."""

    def text(self, node: exp.Expr) -> str:
        sql = str(self.sql(node))
        self.written += len(sql)
        self.check_length(len(sql))
        return sql

    def check_length(self, characters: int) -> None:
        """Raises StatementRefused if a part of the SQL, or all parts so far, are too long."""
        if characters > LONGEST or self.written > 10 * LONGEST:
            raise StatementRefused("The statement is too long.")

    def grouped(self, node: exp.Expr) -> str:
        """Returns the SQL of an operand, in parentheses unless it is a single term."""
        sql = self.text(node)
        plain = isinstance(
            node, exp.Column | exp.Literal | exp.Paren | exp.Anonymous | exp.Cast | exp.Placeholder
        )
        return sql if plain else f"({sql})"

    # Calls

    def anonymous_sql(self, expression: exp.Anonymous) -> str:
        if (column := map_lookups.column_of(expression)) is not None:
            return self.text(column)
        name = expression.name.lower()
        if name in aggregate_functions.AGGREGATES or name in aggregate_functions.WITHIN:
            return aggregate_calls.aggregate(self, expression, None)
        if name in function_list.WINDOW:
            raise StatementRefused(f"{expression.name}() needs OVER.")
        if name in function_list.GENERATORS:
            raise StatementRefused(
                f"{expression.name}() stands alone in SELECT, or in LATERAL VIEW."
            )
        arguments = expression.expressions
        if name in function_list.CASTS:
            self.count(expression, 1, 1)
            return self.cast(
                arguments[0], exp.DataType.build(function_list.CASTS[name], "databricks")
            )
        special = (
            text_functions.SPECIAL.get(name)
            or time_functions.SPECIAL.get(name)
            or collection_functions.SPECIAL.get(name)
        )
        if special and (sql := special(self, expression)) is not None:
            return sql
        simple = function_list.SIMPLE.get(name)
        if simple:
            self.count(expression, simple.least, simple.most)
            given = [self.text(argument) for argument in arguments]
            if simple.template is None:
                return f"{name}({', '.join(given)})"
            fill = self.once if simple.repeats else str.format
            return f"({fill(simple.template, *given)})"
        named = function_list.parameters(name)
        if named is None:
            raise StatementRefused(f"The function {expression.name}() does not exist here.")
        return f"spark_{name}({', '.join(self.arguments(arguments, named))})"

    def arguments(self, given: list[exp.Expr], named: tuple[str, ...]) -> list[str]:
        """Returns the SQL of the arguments of a DuckDB macro with the parameters ``named``: cast to
        DATE if the parameter's name ends in ``day``, to TIMESTAMPTZ if it ends in ``time``."""
        arguments_sql = []
        for position, argument in enumerate(given):
            name = named[position] if position < len(named) else ""
            text = self.text(argument)
            if name.endswith("day") and not operand_types.is_date(argument):
                text = self.null_safe(argument, "DATE", self.once("spark_date({0})", text))
            elif name.endswith("time") and not operand_types.is_time(argument):
                text = self.null_safe(
                    argument, "TIMESTAMPTZ", self.once("spark_timestamp({0})", text)
                )
            arguments_sql.append(text)
        return arguments_sql

    def once(self, template: str, *given: str) -> str:
        """Fills an SQL template that repeats its arguments, and returns the SQL. Short arguments
        are repeated: DuckDB computes equal ones once, and a variable costs more than most calls. If
        one is long or random, all with calls become variables, computed once: else nesting would
        make the text grow exponentially."""
        if all(map(_is_repeatable, given)):
            return template.format(*given)
        return self.bound(template, *given)

    def bound(self, template: str, *given: str) -> str:
        """Fills an SQL template. Every argument that contains a parenthesis becomes a variable,
        also if it is short: for templates that DuckDB plans slowly, because their macros repeat an
        argument at each level."""
        self.named += 1
        row = f"inner_v{self.named}"
        names, bound = list[str](), list[str]()
        for argument in given:
            name = argument
            if "(" in argument:
                name = f"{row}.v{len(bound)}"
                bound.append(f"v{len(bound)} := {argument}")
            names.append(name)
        sql = template.format(*names)
        if not bound:
            return sql
        # All arguments stand outside of the lambda: DuckDB takes no subqueries within one.
        return f"list_transform([struct_pack({', '.join(bound)})], lambda {row}: {sql})[1]"

    def null_safe(self, node: exp.Expr, kind: str, otherwise: str) -> str:
        return f"CAST(NULL AS {kind})" if isinstance(node, exp.Null) else otherwise

    def count(self, call: exp.Anonymous, least: int, most: int) -> None:
        if not least <= len(call.expressions) <= most:
            wanted = str(least) if least == most else f"{least} to {most}"
            raise StatementRefused(
                f"{call.name}() takes {wanted} arguments, not {len(call.expressions)}."
            )

    # Aggregates and windows

    def _around(self, expression: exp.Expr) -> str:
        call: Any = expression
        while isinstance(
            call, exp.Window | exp.Filter | exp.WithinGroup | exp.IgnoreNulls | exp.RespectNulls
        ):
            call = call.this
        if not isinstance(call, exp.Anonymous):
            raise StatementRefused(
                "OVER, FILTER and WITHIN GROUP follow an aggregate or a window function."
            )
        return aggregate_calls.aggregate(self, call, expression)

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
        """Returns the SQL of a call with OVER, with ``inside`` in place of what is before OVER."""
        plain = window.copy()
        plain.set("this", exp.Var(this=inside))
        return str(super().window_sql(plain))

    def duck_sql(self, expression: row_generators.Duck) -> str:
        return str(expression.this).format(*map(self.text, expression.expressions))

    def group_sql(self, expression: exp.Group) -> str:
        grouping.move_into_rollup(expression)
        return str(super().group_sql(expression))

    # Casts

    def cast_sql(self, expression: exp.Cast, _safe_prefix: str | None = None) -> str:
        return self.cast(expression.this, expression.to)

    def trycast_sql(self, expression: exp.TryCast) -> str:
        value, to = expression.this, expression.to
        if isinstance(value, exp.Null):
            return self.cast(value, to)
        if to.is_type(exp.DType.TEXT):
            return self.once("spark_string({0})", self.text(value))
        if to.this not in cast_templates.TRIED:
            raise StatementRefused(f"TRY_CAST to {to.sql('databricks')} does not exist here.")
        clean = self.once(f"{cast_templates.TRIED[to.this]}({{0}})", self.text(value))
        return f"TRY_CAST({clean} AS {to.sql('duckdb')})"

    def cast(self, value: exp.Expr, to: exp.DataType) -> str:
        if to.is_type(exp.DType.DECIMAL):
            sizes = ", ".join(expression.this.name for expression in to.expressions) or "10, 0"
            if isinstance(value, exp.Null):
                return f"CAST(NULL AS DECIMAL({sizes}))"
            return self.once(
                f"CAST(inner_decimal_text({{0}}) AS DECIMAL({sizes}))", self.text(value)
            )
        if to.this not in cast_templates.CASTS or to.expressions:
            raise StatementRefused(f"CAST to {to.sql('databricks')} does not exist here.")
        if isinstance(value, exp.Null):
            return f"CAST(NULL AS {cast_templates.NULLS.get(to.this, to.this.value)})"
        constant = cast_templates.constant(value, to)
        if constant is not None:
            return constant
        if to.is_type(exp.DType.BIGINT) and whole_numbers.is_exact(value):
            return f"TRY_CAST(trunc({self.text(value)}) AS BIGINT)"
        is_nested = to.is_type(exp.DType.TEXT) and row_generators.may_be_nested(value)
        return self.once(
            cast_templates.NESTED if is_nested else cast_templates.CASTS[to.this], self.text(value)
        )

    # Operators

    def div_sql(self, expression: exp.Div) -> str:
        a, b = expression.this, expression.expression
        if whole_numbers.is_plain(expression):
            return f"({self.grouped(a)} / {self.grouped(b)})"
        if (places := whole_numbers.places(expression)) is not None:
            return f"round({self.grouped(a)} / {self.grouped(b)}, {places})"
        digits = ", ".join(operand_types.digit_count(operand) for operand in (a, b))
        return self.once(f"inner_divide({{0}}, {{1}}, {digits})", self.text(a), self.text(b))

    def intdiv_sql(self, expression: exp.IntDiv) -> str:
        return f"spark_div({self.text(expression.this)}, {self.text(expression.expression)})"

    def mod_sql(self, expression: exp.Mod) -> str:
        return f"({self.grouped(expression.this)} % {self.grouped(expression.expression)})"

    def sub_sql(self, expression: exp.Sub) -> str:
        return differences.plus_or_minus(self, expression, "-")

    def add_sql(self, expression: exp.Add) -> str:
        return differences.plus_or_minus(self, expression, "+")

    def interval_sql(self, expression: exp.Interval) -> str:
        return time_functions.interval(self, expression)

    def extract_sql(self, expression: exp.Extract) -> str:
        return time_functions.extract(self, expression.name, expression.expression)

    def bracket_sql(self, expression: exp.Bracket) -> str:
        if (column := map_lookups.column_of(expression)) is not None:
            return self.text(column)
        if len(expression.expressions) != 1:
            raise StatementRefused("An index is one value.")
        value, (key,) = self.grouped(expression.this), expression.expressions
        is_map = row_generators.is_map(expression.this)
        if is_map or (isinstance(key, exp.Literal) and key.is_string):
            return f"{value}[{self.text(key)}]"
        template, given = "inner_item({0}, {1}, cardinality({0}))", (value, self.text(key))
        if expression.this.find(exp.Bracket):  # each level would double the text
            return self.once(template, *given)
        return template.format(*given)

    def like_sql(self, expression: exp.Like) -> str:
        return text_functions.like(self, expression, "like_escape")

    def ilike_sql(self, expression: exp.ILike) -> str:
        return text_functions.like(self, expression, "ilike_escape")

    def escape_sql(self, expression: exp.Escape) -> str:
        return text_functions.escaped(self, expression)

    def regexplike_sql(self, expression: exp.RegexpLike) -> str:
        pattern = text_functions.pattern(self, expression.expression)
        sql = f"regexp_matches({self.text(expression.this)}, {pattern})"
        return f"(NOT {sql})" if expression.args.get("negate") else sql

    def concat_sql(self, expression: exp.Concat) -> str:
        # The parser makes this node from adjacent string literals.
        return "(" + " || ".join(map(self.text, expression.expressions)) + ")"

    def rawstring_sql(self, expression: exp.RawString) -> str:
        return text_functions.quoted(str(expression.this))

    def substring_sql(self, expression: exp.Substring) -> str:
        parts = (expression.this, expression.args.get("start"), expression.args.get("length"))
        return f"spark_substring({', '.join(self.text(part) for part in parts if part)})"

    def strposition_sql(self, expression: exp.StrPosition) -> str:
        parts = (expression.args["substr"], expression.this, expression.args.get("position"))
        return f"spark_position({', '.join(self.text(part) for part in parts if part)})"

    def trim_sql(self, expression: exp.Trim) -> str:
        side = (expression.args.get("position") or "BOTH").lower()
        name = {"both": "trim", "leading": "ltrim", "trailing": "rtrim"}[side]
        characters = expression.expression
        shown = self.text(characters) if characters else "' '"
        return f"{name}({self.text(expression.this)}, {shown})"

    def dpipe_sql(self, expression: exp.DPipe) -> str:
        return text_functions.concatenation(self, [expression.this, expression.expression])

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
        return comparisons.compared(self, expression, "=")

    def neq_sql(self, expression: exp.NEQ) -> str:
        return comparisons.compared(self, expression, "<>")

    def gt_sql(self, expression: exp.GT) -> str:
        return comparisons.compared(self, expression, ">")

    def gte_sql(self, expression: exp.GTE) -> str:
        return comparisons.compared(self, expression, ">=")

    def lt_sql(self, expression: exp.LT) -> str:
        return comparisons.compared(self, expression, "<")

    def lte_sql(self, expression: exp.LTE) -> str:
        return comparisons.compared(self, expression, "<=")

    def nullsafeeq_sql(self, expression: exp.NullSafeEQ) -> str:
        return comparisons.compared(self, expression, "IS NOT DISTINCT FROM")

    def in_sql(self, expression: exp.In) -> str:
        return comparisons.is_member(self, expression) or str(super().in_sql(expression))

    def between_sql(self, expression: exp.Between) -> str:
        return comparisons.is_between(self, expression)


def _is_repeatable(argument: str) -> bool:
    """Whether a template may repeat an argument."""
    most = _LONGER if argument.strip("()").count("(") == 1 else _SHORT
    changes = any(call in argument for call in function_list.OTHER_EACH_TIME)
    return not changes and len(argument) <= most


_OWN: Final = frozenset(name for name in vars(Generator) if name.endswith("_sql"))


class Writer(DuckDB):
    """sqlglot's DuckDB dialect with :class:`Generator` in place of its own generator."""

    class Generator(Generator):
        TRANSFORMS: ClassVar = {
            kind: transform
            for kind, transform in Generator.TRANSFORMS.items()
            if f"{kind.key}_sql" not in _OWN
        } | {row_generators.Duck: lambda self, node: self.duck_sql(node)}


def generate_sql(tree: exp.Expr) -> str:
    sql = str(Writer().generate(tree, copy=False, comments=False))
    if len(sql) > LONGEST:
        raise StatementRefused("The statement is too long.")
    return sql
