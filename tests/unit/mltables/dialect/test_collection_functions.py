"""Lambdas within lambdas, and fields named like a lambda's parameter."""

from __future__ import annotations

import duckdb
import pytest

from mltables import statement_check
from mltables.dialect import macros

ANSWERS = {
    "transform(array(1, 2), x -> transform(array(10, 20), y -> x + y))": [[11, 21], [12, 22]],
    "transform(array(1, 2), x -> transform(array(10, 20), x -> x + 1))": [[11, 21], [11, 21]],
    "transform(array(5, 6), (x, i) -> transform(array(1), (y, j) -> x + i + y + j))": [[6], [8]],
    "exists(array('a'), k -> exists(array('b'), j -> j = k))": False,
    "exists(array('a'), k -> exists(array('b', 'a'), j -> j = k))": True,
    "filter(array(1, 2), x -> exists(array(2, 3), y -> x = y))": [2],
    "transform(array(named_struct('x', 7)), x -> x.x)": [7],
    "filter(array(named_struct('name', 'a')), name -> name.name = 'b')": [],
    "aggregate(array(1, 2), 0, (a, x) -> a + aggregate(array(10), 0, (b, y) -> b + y * x))": 30,
    "aggregate(array(1), 0, (a, x) -> a + x, a -> exists(array(1), b -> a = b))": True,
    "transform_values(map('k', map('l', 'm')), (k, v) -> transform_values(v, (i, j) -> k || i))": {
        "k": {"l": "kl"}
    },
    "map_filter(map(1, 2), (k, v) -> exists(array(2), x -> x = v))": {1: 2},
    "transform_keys(map(1, 2), (k, v) -> aggregate(array(5), 0, (a, k) -> a + k) + k)": {6: 2},
}


@pytest.mark.parametrize("expression", ANSWERS)
def test_names_mean_the_innermost_parameter(expression: str) -> None:
    sql = statement_check.translate(f"SELECT {expression} AS v").sql
    with duckdb.connect() as connection:
        macros.create_macros(connection, sql)
        ((value,),) = connection.execute(sql).fetchall()
    assert value == ANSWERS[expression]
