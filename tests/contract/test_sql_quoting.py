"""A quoted name may hold anything. Wherever a statement may have a word or a number, a quoted name
in its place is refused or stays quoted in the translated statement."""

from __future__ import annotations

import re
from typing import Final

import pytest

pytest.importorskip("duckdb")

from mltables import statement_check
from mltables.dialect.refusal import StatementRefused

MARK: Final = "zq"
NAMES: Final = (f"`{MARK}'\") --`", f"`2)), {MARK} --`", f"`{MARK} x`")
STATEMENTS: Final = (
    "SELECT run_id, CAST(status AS STRING) AS s, TRY_CAST(run_name AS DECIMAL(10, 2)) FROM "
    "system.mlflow.runs_latest r WHERE start_time >= now() - INTERVAL 7 DAYS ORDER BY s DESC NULLS "
    "LAST LIMIT 10 OFFSET 2",
    "WITH c (a, b) AS (SELECT experiment_id, count(*) FROM runs_latest GROUP BY 1 HAVING count(*) "
    "> 3) SELECT a FROM c JOIN experiments_latest e ON e.experiment_id = c.a WHERE b BETWEEN 1 AND "
    "2",
    "SELECT extract(YEAR FROM start_time), date_trunc('DAY', start_time), date_add(start_time, 3), "
    "trim(BOTH 'a' FROM run_name), substring(run_name, 1, 2) FROM runs_latest TIMESTAMP AS OF "
    "'2026-01-01'",
    "SELECT * FROM runs_latest VERSION AS OF 3",
    "SELECT run_id, row_number() OVER (PARTITION BY experiment_id ORDER BY start_time ROWS BETWEEN "
    "1 PRECEDING AND CURRENT ROW) AS n FROM runs_latest WINDOW w AS (ORDER BY run_id)",
    "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY end_time) FILTER (WHERE status = 'OK') "
    "FROM runs_latest",
    "SELECT request:a.b[0]::INT, variant_get(request, '$.a', 'DECIMAL(3, 1)') FROM trace_unified",
    "SELECT attributes['k'], e.name FROM spans LATERAL VIEW explode(events) t AS e WHERE name "
    "RLIKE 'a' AND kind ILIKE 'b%' ESCAPE '!'",
    "SELECT transform(array(1, 2), x -> x + 1), named_struct('a', 1).a, map('k', 2)['k'] "
    "FROM spans",
    "SELECT * FROM (SELECT status, experiment_id FROM runs_latest) PIVOT (count(*) AS n FOR "
    "status IN ('a' AS x, 'b'))",
    "SELECT CASE WHEN status IS NULL THEN 1 ELSE 2 END, :p, count(DISTINCT run_id) FROM "
    "runs_latest GROUP BY GROUPING SETS ((1), (2)) QUALIFY row_number() OVER (ORDER BY 1) = 1",
    "SELECT 1 FROM runs_latest UNION ALL SELECT 2 FROM traces EXCEPT SELECT 3 FROM spans",
    "SELECT sum(cost) AS c FROM gateway_usage g WHERE g.call_time > DATE '2026-01-01' AND model IN "
    "('a', 'b')",
    "SELECT t.* FROM catalog.schema.mine_trace_unified AS t CROSS JOIN traces v",
    "SELECT first_value(run_name) IGNORE NULLS OVER (ORDER BY run_id) FROM runs_latest",
)
_WORDS: Final = re.compile(r"'[^']*'|\b\w+\b")
_QUOTED: Final = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"")


def replaced(statement: str) -> list[str]:
    """The statement with a quoted name in place of each of its words and numbers."""
    return [
        statement[: word.start()] + name + statement[word.end() :]
        for word in _WORDS.finditer(statement)
        for name in NAMES
        if not word[0].startswith("'")
    ]


@pytest.mark.parametrize("statement", STATEMENTS)
def test_a_quoted_name_stays_quoted(statement: str) -> None:
    accepted = 0
    for changed in replaced(statement):
        try:
            translated = statement_check.translate(changed)
        except StatementRefused:
            continue
        accepted += 1
        for sql in (
            translated.sql,
            *(as_of.sql for as_of in translated.as_of),
            *(
                value
                for alternatives in translated.bounds.values()
                for bounds in alternatives
                for bound in bounds
                for value in bound.values
            ),
        ):
            assert MARK not in _QUOTED.sub("", str(sql)).lower(), (changed, sql)
    assert accepted or "VERSION" in statement
