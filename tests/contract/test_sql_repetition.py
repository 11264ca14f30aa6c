"""No short statement becomes a long one: syntax whose translation repeats a part of the statement
is refused in time, or its SQL stays short."""

from __future__ import annotations

from pathlib import Path

import pytest

from mlcore import errors
from tests.contract.conftest import Store
from tests.contract.lake import Tables, tables

__all__ = ["tables"]

gate = pytest.importorskip("mltables.statement_check")
query_memory = pytest.importorskip("mltables.query_memory")
statement_execution = pytest.importorskip("mltables.statement_execution")

RUNS = "system.mlflow.runs_latest"
LONG = f"concat({', '.join(['run_id'] * 400)})"
"""An expression of 400 nodes."""
SHORTER = f"concat({', '.join(['run_id'] * 30)})"
WIDE = f"CASE WHEN '{'a' * 1500}' LIKE ANY ({', '.join(['$$'] * 150)}) THEN run_id END".replace(
    "$", "'"
)
"""An expression of 2 KB whose SQL has 200 KB."""


def _listed(part: str, times: int, separator: str = ", ") -> str:
    return separator.join([part] * times)


def _nested(form: str, times: int, innermost: str = "run_id") -> str:
    """``form`` in itself; ``@`` is where."""
    for _ in range(times):
        innermost = form.replace("@", innermost)
    return innermost


def _json_tuple(text: str) -> str:
    return f"json_tuple({text}, {', '.join(f'$k{n}$' for n in range(50))})".replace("$", "'")


def _pivot(aggregates: str, members: str) -> str:
    return f"SELECT * FROM (SELECT run_id, status FROM {RUNS}) PIVOT ({aggregates} {members})"


_NUMBERS = ", ".join(map(str, range(300)))
LONG_ONES = {
    "LIKE ANY": f"SELECT ({WIDE}) LIKE ANY ({_listed('run_id', 100)}) FROM {RUNS}",
    "NOT LIKE ALL": f"SELECT ({WIDE}) NOT LIKE ALL ({_listed('run_id', 100)}) FROM {RUNS}",
    "decode": f"SELECT decode({WIDE}, {_listed('1', 200)}) FROM {RUNS}",
    "json_tuple": f"SELECT {_json_tuple(LONG)} FROM {RUNS}",
    "json_tuples": f"SELECT 1 FROM {RUNS} "
    + " ".join(f"LATERAL VIEW {_json_tuple(SHORTER)} t{n}" for n in range(10)),
    "json_tuple of a long text": f"SELECT {_json_tuple(repr('x' * 40_000))}",
    "stack": f"SELECT stack(2, {_listed(WIDE, 14)}) FROM {RUNS}",
    "PIVOT with many cells": _pivot(
        ", ".join(f"max(run_id) AS a{n}" for n in range(300)), f"FOR status IN ({_NUMBERS})"
    ),
    "PIVOT of a long expression": _pivot(f"max({LONG})", f"FOR status IN ({_NUMBERS})"),
    "PIVOT with a long value": _pivot(
        ", ".join(f"max(run_id) AS a{n}" for n in range(300)), f"FOR status IN ('{'x' * 40_000}')"
    ),
    "PIVOT with several FORs": _pivot(
        "max(run_id)", "FOR " + " ".join(f"c{n} IN ({_NUMBERS})" for n in range(6))
    ),
    "WITH ROLLUP": f"SELECT {LONG} FROM {RUNS} GROUP BY {_listed('1', 300)} WITH ROLLUP",
    "WITH CUBE": f"SELECT {LONG} FROM {RUNS} GROUP BY {_listed('1', 300)} WITH CUBE",
    "grouping_id": f"SELECT {_listed('grouping_id()', 50)} FROM {RUNS} "
    f"GROUP BY ROLLUP ({_listed('run_id', 100)})",
    "window": f"SELECT {_listed('window.end', 300)} FROM {RUNS} GROUP BY window({LONG}, '1 day')",
    "aliases": "SELECT CAST(run_id AS INT) AS a0, "
    + ", ".join(f"a{n} + a{n} AS a{n + 1}" for n in range(60))
    + f" FROM {RUNS}",
}  # fmt: skip
NESTED = {
    **{
        f"{call} in itself": f"SELECT {_nested(call, 16)} FROM {RUNS}"
        for call in (
            "concat_ws(@, run_id, 1)", "if(@, 1, 2)", "width_bucket(@, 0, 1, 2)",
            "element_at(array(@), 1)", "split(@, 'a')[0]", "CAST(@ AS INT)",
            "TRY_CAST(@ AS DATE)", "(@ / 2)", "(2 / @)", "(@ - start_time)", "round(@, 1)",
            "datediff(@, run_id)", "date_format(@, 'yyyy')", "nvl2(@, 1, 2)", "try_divide(@, 2)",
            "get_json_object(@, '$.a')", "(@ BETWEEN 1 AND 2)",
            "from_json(@, 'a INT').a", "arrays_zip(array(@))[0]", "(@ LIKE ANY ('a'))",
            "decode(@, 1, 2, 3)", "hash(@)", "(SELECT max(@))",
        )
    },
    "lambdas": f"SELECT {_nested('transform(array(1), x -> @)', 20, 'x')}",
    "lambdas of two": f"SELECT {_nested('zip_with(array(1), array(2), (a, b) -> @)', 20, 'a + b')}",
    "CASE in CASE": f"SELECT {_nested('CASE WHEN @ = @ THEN @ END', 6)} FROM {RUNS}",
    "WITH": "WITH a0 AS (SELECT 1 AS x), "
    + ", ".join(f"a{n + 1} AS (SELECT y.x FROM a{n} y, a{n} z)" for n in range(40))
    + " SELECT * FROM a40",
    "LATERAL VIEW": f"SELECT 1 FROM {RUNS} "
    + " ".join(f"LATERAL VIEW posexplode(array(run_id)) t{n} AS p{n}, c{n}" for n in range(40)),
}  # fmt: skip


@pytest.mark.parametrize("name", LONG_ONES)
def test_what_would_repeat_long_parts_is_refused_before_it_does(name: str) -> None:

    with (
        query_memory.limited_address_space(40 << 20),
        pytest.raises(gate.StatementRefused, match=r"too long|one FOR|GROUP BY"),
    ):
        gate.translate(LONG_ONES[name])


@pytest.mark.parametrize("name", NESTED)
def test_what_is_nested_grows_by_a_factor_for_all_levels_together(name: str) -> None:
    sql = NESTED[name]
    assert len(gate.translate(sql).sql) < 100 * len(sql)


def test_a_statement_that_takes_too_much_memory_is_refused_as_too_long() -> None:
    with pytest.raises(MemoryError), query_memory.limited_address_space(1 << 20):
        bytearray(64 << 20)
    bytearray(64 << 20)  # the limit ends with the block
    request = {"sql": LONG_ONES["decode"], "seconds": 0, "starting": 0}
    assert statement_execution.prepare_rows(request, Path()) == {
        "error": "The statement is too long."
    }


def test_the_answer_of_the_server_is_an_error_of_the_caller(store: Store, tables: Tables) -> None:
    with pytest.raises(errors.InvalidParameterValue, match="too long"):
        tables.ask(LONG_ONES["PIVOT with many cells"])
    assert tables.ask("SELECT 1 AS one")["rows"] == [[1]]
