"""``exists``, ``forall`` and ``get`` over lists in rows, compared with Python's own computation. An
empty list is answered without the lambda."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence

import pytest

from tests.contract.conftest import EXAMPLES
from tests.contract.spark_engine import Engine

Member = int | None
LISTS = (None, (), (), (None,), (1,), (5,), (None, 5), (1, None), (2, 3), (1, 5, None))


def _any(flags: Sequence[bool | None]) -> bool | None:
    if True in flags:
        return True
    return None if None in flags else False


def _above(member: Member, least: int) -> bool | None:
    return None if member is None else member > least


@pytest.mark.parametrize("seed", range(min(4, EXAMPLES)))
def test_lists_of_rows_have_pythons_answers(seed: int) -> None:
    rng = random.Random(seed)
    rows = rng.sample(LISTS, len(LISTS))
    least, place = rng.randrange(6), rng.randrange(-1, 4)
    values = " UNION ALL ".join(
        f"SELECT {n} AS n, {_written(row)} AS l" for n, row in enumerate(rows)
    )
    condition = f"x -> x > {least}"
    # A list that is computed takes the usual way.
    lists = ("l", "o.l", "(l)", "filter(l, x -> true)", "s.m")
    calls = [f"{call}({of}, {condition})" for of in lists for call in ("exists", "forall")]
    gets = [f"get({of}, {place})" for of in lists]
    engine = Engine()
    try:
        answer = engine.ask(
            f"SELECT {', '.join((*calls, *gets))} FROM (SELECT n, l, named_struct('m', l) AS s "
            f"FROM ({values})) AS o ORDER BY n"
        )
    finally:
        engine.connection.close()
    assert answer["rows"] == [
        [
            *([_exists(row, least), _forall(row, least)] * len(lists)),
            *[_get(row, place)] * len(lists),
        ]
        for row in rows
    ]


def _exists(row: tuple[Member, ...] | None, least: int) -> bool | None:
    return None if row is None else _any([_above(member, least) for member in row])


def _forall(row: tuple[Member, ...] | None, least: int) -> bool | None:
    if row is None:
        return None
    refuted = _any([None if member is None else member <= least for member in row])
    return None if refuted is None else not refuted


def _get(row: tuple[Member, ...] | None, place: int) -> Member:
    return row[place] if row is not None and 0 <= place < len(row) else None


def _written(row: tuple[Member, ...] | None) -> str:
    if row is None:
        return "CASE WHEN false THEN array(0) END"
    members = "".join(", NULL" if member is None else f", {member}" for member in row)
    return f"filter(array(0{members}), (x, i) -> i > 0)"


@pytest.mark.parametrize(
    ("call", "depth"),
    [("get({}, 0)", 25), ("array(exists({}, x -> x))", 18), ("array(forall({}, x -> x))", 18)],
)
def test_nested_calls_do_not_grow_exponentially(call: str, depth: int) -> None:
    sql = "l"
    for _ in range(depth):
        sql = call.format(sql)
    started = time.process_time()
    gate = pytest.importorskip("mltables.statement_check")
    text = gate.translate(
        f"SELECT {sql} FROM (SELECT tags AS l FROM system.mlflow.runs_latest)"
    ).sql
    assert len(text) < 10_000
    assert time.process_time() - started < 5
