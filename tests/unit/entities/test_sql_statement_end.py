"""Ends of statements: what is cut is no part of the statement, in little time."""

from __future__ import annotations

import random
import time

import pytest
from sqlglot.dialects.databricks import Databricks

from mlcore.entities.alert_conditions import parse
from mlcore.entities.sql_statement_end import without_end


@pytest.mark.parametrize(
    ("sql", "statement"),
    [
        ("SELECT 1 ;  -- by experiment\n;\n", "SELECT 1"),
        ("SELECT 1 -- a; b", "SELECT 1"),
        ("SELECT 1 /* ; /* ' */ \" */ ; /* open", "SELECT 1"),
        ("SELECT ';' ;", "SELECT ';'"),
        ("SELECT '; -- '", "SELECT '; -- '"),
        ('SELECT "; -- "', 'SELECT "; -- "'),
        ("SELECT 1 AS `; -- `", "SELECT 1 AS `; -- `"),
        (r"SELECT 'it\'s; -- ';", r"SELECT 'it\'s; -- '"),
        (r"SELECT r'\'; -- '", r"SELECT r'\'"),
        ("SELECT 1; -- a\nSELECT 2;", "SELECT 1; -- a\nSELECT 2"),
        ("SELECT 1 AS a -- ; -- -- \nFROM t;", "SELECT 1 AS a -- ; -- -- \nFROM t"),
        (" ;-- x", ""),
    ],
)
def test_only_the_end_is_cut(sql: str, statement: str) -> None:
    assert without_end(sql) == statement


@pytest.mark.parametrize("seed", range(300))
def test_the_parser_reads_the_same_statement(seed: int) -> None:
    rng = random.Random(seed)
    parts = ("'", '"', "`", "\\", "--", "/*", "*/", ";", " ", "\n", "a", "r'", ")", "1", "x''")
    sql = "SELECT " + "".join(rng.choice(parts) for _ in range(rng.randint(1, 14)))

    def tokens(text: str) -> list[str]:
        return [token.text for token in Databricks().tokenize(text) if token.text != ";"]

    try:
        expected = tokens(sql)
    except Exception:
        # The parser refuses it, whatever is cut.
        return
    assert tokens(without_end(sql)) == expected


@pytest.mark.parametrize(
    "part", ["; -- -- ", "'", r"\'", '"', "`", "/*", "*/", "r'", "-- \n", "; ", "--"]
)
def test_long_texts_take_little_time(part: str) -> None:
    condition = parse("MAX(a) > 1")
    for sql in (f"SELECT 1 AS a -- {part * 20_000}\nFROM t", f"SELECT 1 {part * 20_000}x"):
        begun = time.monotonic()
        condition.query(sql)
        assert time.monotonic() - begun < 5
