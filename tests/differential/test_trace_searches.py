"""Searches of traces, their metrics and correlations: stock MLflow and the product, told the same
traces, give the same answers."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from tests.differential.trace_pair import ID
from tests.differential.trace_worlds import (
    COUNT,
    LOCATIONS,
    MS,
    NAMES,
    RUNS,
    SEED,
    TEXTS,
    TRACES,
    TYPES,
    World,
    world,
)

__all__ = ["world"]

SEARCH = "/api/3.0/mlflow/traces/search"

EXPRESSIONS = ("^(?!a)", "(a|b)*$", "(?i)CHAT", "(.)q(?=.)", r"\\bagent\\b", "([a-z])\\1", "(a+)+$")


def _text(rng: random.Random) -> str:
    patterns = ("%a%", "_", "^a", "a$", "[", "OK", "%5%", "r1", "s1", *EXPRESSIONS)
    value = rng.choice((*TEXTS, *NAMES, *patterns))
    quote = '"' if "'" in value or (rng.random() < 0.3 and '"' not in value) else "'"
    return f"{quote}{value}{quote}"


def _list(rng: random.Random) -> str:
    return "(" + ", ".join(_text(rng) for _ in range(rng.randrange(1, 4))) + ")"


TEXT_SIGNS = ("=", "!=", "LIKE", "ILIKE", "RLIKE", "like", "=", "!=")
NUMBER_SIGNS = ("=", "!=", "<", "<=", ">", ">=")
REMARKABLE = (
    *("timestamp", "timestamp > 5.5", "tags.x", "foo.x = 'a'", "status", "name = 5", "tags.k = 5"),
    *("status = 'a' OR status = 'b'", "span.size = 'a'", "span.name > 'a'", "span.name like 'a'"),
    *("span.attributes. = 'a'", "span.content = 'a'", "trace.text RLIKE 'a'", "feedback.x = 5"),
    *(
        "feedback.x > '5'",
        "prompt LIKE 'p%'",
        "prompt = 'p'",
        "issue.name = 'a'",
        "issue.id != 'a'",
    ),
    *("trace_id = 'a'", "state = 'OK'", "experiment_id = '1'", "name IN ('a')", "run_id IN ('r1')"),
    *("span.name IS NULL", "status IS NULL", "timestamp_ms IS NULL", "request_id > 'a'", "   "),
    *(
        "metadata.`mlflow.trace.cost` LIKE 'a'",
        "tags.k < 'a'",
        "metadata.k IN ('a')",
        "status IN ()",
    ),
    *("execution_time = (1)", "timestamp_ms LIKE '5'", "tags.k IN (1)", "attr.status = 'OK'"),
    *("metadata.k = metadata.k", "text LIKE 'a'", "'a' = status", "(status = 'OK')", "a.b.c = 'x'"),
)


def _clause(rng: random.Random, world: World) -> str:  # noqa: PLR0912 -- one family each
    key = rng.choice(("k", "`a b`", '"a b"', "`é.x`", "none"))
    kind = rng.randrange(14)
    if kind == 0:
        field = rng.choice(("timestamp", "timestamp_ms", "attributes.timestamp", "trace.end_time"))
        return f"{field} {rng.choice(NUMBER_SIGNS)} {MS + rng.choice((0, 1, 5, 1001, 3_600_001))}"
    if kind == 1:
        return f"execution_time_ms {rng.choice(NUMBER_SIGNS)} {rng.choice((1, 500, 0, 1500))}"
    if kind == 2:
        if rng.random() < 0.3:
            return f"status {rng.choice(('IN', 'NOT IN', 'in'))} ('OK', 'x')"
        states = ("OK", "ERROR", "IN_PROGRESS", "ok")
        field = rng.choice(("status", "trace.status"))
        return f"{field} {rng.choice(TEXT_SIGNS)} '{rng.choice(states)}'"
    if kind == 3:
        field = rng.choice(("client_request_id", "attribute.request_id"))
        value = f"'{rng.choice(world.ids)}'" if field[-10:] == "request_id" else _text(rng)
        if rng.random() < 0.3:
            return f"{field} {rng.choice(('IN', 'NOT IN'))} ({value}, 'a')"
        return f"{field} {rng.choice(TEXT_SIGNS)} {value}"
    if kind == 4:
        return (
            f"{rng.choice(('name', '`name`', 'tags.name'))} {rng.choice(TEXT_SIGNS)} {_text(rng)}"
        )
    if kind == 5:
        return f"run_id {rng.choice(('=', '=', *TEXT_SIGNS))} '{rng.choice(RUNS)}'"
    if kind == 6:
        return rng.choice(("prompt = 'p/1'", "prompt = 'p/2'", "issue.id = 'quality'"))
    if kind in (7, 8):
        family = rng.choice(("tags", "tag", "metadata", "request_metadata"))
        if rng.random() < 0.3:
            return f"{family}.{key} IS {rng.choice(('NULL', 'NOT NULL'))}"
        return f"{family}.{key} {rng.choice(TEXT_SIGNS)} {_text(rng)}"
    if kind == 9:
        name = rng.choice(("mlflow.trace.session", "mlflow.trace.tokenUsage"))
        value = rng.choice(("'s1'", "'s2'", "''"))
        if "token" in name:
            value = (
                "'" + json.dumps({"input_tokens": 1, "output_tokens": 2, "total_tokens": 5}) + "'"
            )
        if rng.random() < 0.3:
            return f"metadata.`{name}` IS {rng.choice(('NULL', 'NOT NULL'))}"
        return f"metadata.{name} {rng.choice(('=', '!='))} {value}"
    if kind in (10, 11):
        return _span_clause(rng)
    family = rng.choice(("feedback", "expectation"))
    name = rng.choice(("quality", "`ok b`", "none", "name", "timestamp"))
    shape = rng.random()
    if shape < 0.3:
        return f"{family}.{name} IS {rng.choice(('NULL', 'NOT NULL'))}"
    if shape < 0.6:
        return f"{family}.{name} {rng.choice(NUMBER_SIGNS[2:])} {rng.choice((0, 0.5, 3, -1e2))}"
    values = ("true", "false", "yes", "good", "5", "3.0", "null", "%o%", "0.5", "^.g")
    return f"{family}.{name} {rng.choice(TEXT_SIGNS)} '{rng.choice(values)}'"


def _span_clause(rng: random.Random) -> str:
    field = rng.choice(("name", "type", "status", "content", "attributes.k", "attributes.`a b`"))
    if field == "content":
        field = rng.choice(("span.content", "trace.text"))
        return f"{field} {rng.choice(('LIKE', 'ILIKE'))} {_text(rng)}"
    if field.startswith("attributes"):
        value = rng.choice(("'%a%'", "'a'", "'^a'", "'^ab$'", "'b$'", "'A%'", "'1.*'"))
        return f"span.{field} {rng.choice(('LIKE', 'ILIKE', 'RLIKE', '=', '!='))} {value}"
    values = (*TYPES, *NAMES, "OK", "UNSET", "%L%", "^C")
    if rng.random() < 0.3:
        return f"span.{field} {rng.choice(('IN', 'NOT IN'))} ('{rng.choice(values)}', 'LLM', 'OK')"
    return f"span.{field} {rng.choice(TEXT_SIGNS[:5])} '{rng.choice(values)}'"


def _orders(rng: random.Random) -> list[str]:
    fields = (
        *("timestamp", "timestamp_ms", "execution_time", "status", "request_id", "name", "run_id"),
        *("tags.k", "tag.`a b`", "metadata.k", "metadata.`mlflow.trace.session`", "trace.status"),
    )
    directions = ("", " ASC", " DESC", " desc")
    if rng.random() < 0.05:
        wrong = (
            "foo",
            "span.name",
            "tags.text",
            "metadata.`mlflow.trace.cost`",
            "status up",
            "client_request_id",
        )
        return [rng.choice(wrong)]
    chosen = rng.sample(fields, rng.choice((0, 0, 1, 1, 2)))
    if {"timestamp", "timestamp_ms"} <= set(chosen) or {"status", "trace.status"} <= set(chosen):
        return chosen[:1]
    return [field + rng.choice(directions) for field in chosen]


def _outcome(side: Any, method: str, path: str, body: Any) -> Any:
    status, answer, _ = side.ask(method, path, body)
    if status >= 400:
        return "refused"
    return [trace["trace_id"] for trace in answer.get("traces", ())]


def _pages(side: Any, body: Any) -> Any:
    """The traces of all pages."""
    results: list[str] = []
    token = ""
    while True:
        status, answer, _ = side.ask("POST", SEARCH, {**body, "page_token": token})
        if status >= 400:
            return "refused"
        results += [trace["trace_id"] for trace in answer.get("traces", ())]
        token = answer.get("next_page_token", "")
        if not token:
            return results


def _comparable_message(message: str) -> str:
    """Sets are shown in any order; what comes behind one is left out."""
    return message.split("{", maxsplit=1)[0]


def test_random_searches(world: World) -> None:
    rng, matched = random.Random(SEED + 1), 0
    for _ in range(COUNT // 4):
        clauses = [_clause(rng, world) for _ in range(rng.choice((0, 1, 1, 2, 2, 3)))]
        if sum("run_id =" in clause for clause in clauses) > 1:
            continue  # for stock the last one counts alone
        body = {
            "locations": LOCATIONS,
            "filter": rng.choice((" AND ", " and ")).join(clauses),
            "order_by": _orders(rng),
            "max_results": rng.choice((100, 100, 3)),
        }
        stock, ours = (_pages(side, body) for side in (world.two.stock, world.two.product))
        assert ours == stock, json.dumps(body)[100:]
        matched += stock != "refused" and 0 < len(stock) < TRACES
    assert matched > COUNT / 20


@pytest.mark.parametrize("clause", REMARKABLE)
def test_refusals(world: World, clause: str) -> None:
    body = {"locations": LOCATIONS, "filter": clause}
    stock, ours = (
        side.ask("POST", SEARCH, body)[:2] for side in (world.two.stock, world.two.product)
    )
    if stock[0] == 500:
        assert ours[0] in (200, 400)
        return
    assert ours[0] == stock[0], (stock, ours)
    if stock[0] == 400 and "timestamp" not in clause:
        assert ours[1]["error_code"] == stock[1]["error_code"]
        assert _comparable_message(ours[1]["message"]) == _comparable_message(stock[1]["message"])


def test_pages(world: World) -> None:
    for order in ([], ["execution_time DESC"], ["tags.k ASC", "timestamp"], ["name"]):
        body: dict[str, Any] = {"locations": LOCATIONS, "order_by": order, "max_results": 5}
        for side in (world.two.stock, world.two.product):
            whole = _outcome(side, "POST", SEARCH, {**body, "max_results": 500})
            results: list[str] = []
            token = ""
            while True:
                page = side.ask("POST", SEARCH, {**body, "page_token": token})[1]
                results += [trace["trace_id"] for trace in page.get("traces", ())]
                token = page.get("next_page_token")
                if not token:
                    break
            assert results == whole
            assert len(results) == TRACES


def test_version_2(world: World) -> None:
    for query in ("", "&filter=status%20%3D%20'OK'&order_by=timestamp", "&max_results=2"):
        world.two.same("GET", f"/api/2.0/mlflow/traces?experiment_ids={ID}{query}")
