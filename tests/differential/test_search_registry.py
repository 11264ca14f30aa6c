"""Random filters and orders of registered models and versions against the stock server."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator

import pytest

from tests.differential.calls import name as fresh
from tests.differential.calls import pairs
from tests.differential.pair import Pair, pair
from tests.differential.rest import Call, get, post

pytestmark = pytest.mark.e2e

EXAMPLES = 250 * int(os.environ.get("DIFFERENTIAL_EXAMPLES", "1"))


@pytest.fixture(scope="module")
def registry(stock_url: str, product_url: str) -> Iterator[tuple[Pair, str, list[str]]]:
    """Both servers with the same models, all of whose names begin alike."""
    with pair(stock_url, product_url) as both:
        prefix = fresh()
        names = [f"{prefix}{end}" for end in ("a", "B", "ab", "a_b", "a%b", "é", "z z", "Ab", "p")]
        for number, name in enumerate(names):
            prompt = {"mlflow.prompt.is_prompt": "true"} if number == 8 else {}
            tags = {**({"t": str(number % 3)} if number % 2 else {"u": "x"}), **prompt}
            both.send(post("registered-models/create", {"name": name, "tags": pairs(**tags)}))
            for step in range(number % 4):
                body = {
                    "name": name,
                    "source": "dummy-source" if prompt else f"s3://bucket/{step % 2}",
                    "tags": pairs(**{"v": str(step)}, **prompt),
                    "run_id": f"{prefix}-run-{step % 3}" if step else "",
                }
                both.send(post("model-versions/create", body))
        yield both, prefix, names


def condition(chance: random.Random, prefix: str, names: list[str], *, versions: bool) -> str:
    def of(*choices: str) -> str:
        return chance.choice(choices)

    name = chance.choice([*names, f"{prefix}missing"])
    digit = str(chance.randrange(4))
    is_prompt = "tags.`mlflow.prompt.is_prompt`"
    sign, order = of("=", "!="), of("=", "!=", "<", "<=", ">", ">=")
    like = of("LIKE", "ILIKE")
    pattern = of(
        *(f"{prefix}{end}" for end in ("%", "a%", "%b", "_", "A%", "a_b")),
        "%b",
        f"%{prefix[2:]}a%",
        name,
    )
    kinds = [
        f"name {sign} '{name}'",
        f"name {of('LIKE', 'ILIKE', 'like')} '{pattern}'",
        f"name {of('IN', 'NOT IN')} ('{name}', '{chance.choice(names)}')",
        f"tags.{of('t', 'u', 'v')} {sign} '{digit}'",
        f"tags.{of('t', 'v')} {like} '%{digit}'",
        f"{is_prompt} {sign} '{of('true', 'false')}'",
        of(
            "name",
            "bogus = 'x'",
            "name IS NULL",
            "tags.t is not null",
            "name = x",
            "name = 5",
            "name > 'a'",
            "tags.t > '1'",
            "tags.t = 1",
            "tags.t IN ('1')",
            "params.x = '1'",
            "attribute.name = 'a'",
            "name = 'a' OR name = 'b'",
            "name IN ()",
            "name IN (1)",
            "version_number = 1.5",
            "creation_timestamp > 5",
        ),
    ]
    if versions:
        kinds += [
            f"version_number {order} {digit}",
            f"version_number = '{digit}'",
            of(
                "version_number LIKE '1'",
                "version_number IN ('1')",
                "version_number = 'x'",
                "source_path IN ('s3://bucket/1')",
            ),
            f"run_id {sign} '{prefix}-run-{digit}'",
            f"run_id IN ('{prefix}-run-1', '{prefix}-run-2')",
            f"run_id {sign} ''",
            f"source_path {of('=', '!=', 'LIKE')} 's3://bucket/{digit}'",
        ]
    weights = [1.0] * len(kinds)
    weights[6] = 0.25
    return chance.choices(kinds, weights)[0]


def call(chance: random.Random, prefix: str, names: list[str]) -> Call:
    versions = chance.random() < 0.6
    conditions = [
        condition(chance, prefix, names, versions=versions) for _ in range(chance.choice([0, 1, 2]))
    ]
    conditions.append(f"name LIKE '{prefix}%'")
    chance.shuffle(conditions)
    orders = ["name", "name DESC", "bogus", "name FOO"]
    # Names decide what times leave open, so that the order is the same on both servers.
    orders += ["version_number DESC", "version_number ASC"] if versions else []
    order_by = chance.sample(orders, chance.choice([1, 1, 2])) if chance.random() < 0.5 else []
    if versions and not order_by:
        order_by = ["name", "version_number"]
    if {"name", "name DESC"} <= set(order_by):
        order_by.remove("name")
    if {"version_number DESC", "version_number ASC"} <= set(order_by):
        order_by.remove("version_number ASC")
    kind = "model-versions" if versions else "registered-models"
    more = {"max_results": chance.randrange(1, 6)} if chance.random() < 0.4 else {}
    text = " AND ".join(conditions)
    return get(f"{kind}/search", {"filter": text, "order_by": order_by, **more})


def test_random_searches(registry: tuple[Pair, str, list[str]]) -> None:
    both, prefix, names = registry
    chance = random.Random(7)
    nonempty = 0
    calls = [call(chance, prefix, names) for _ in range(EXAMPLES)]
    both.send_all(calls)
    for sent in calls[:50]:
        reply = both.send(sent)
        nonempty += reply.status == 200 and bool(reply.body)
    assert nonempty > 10


def test_pages(registry: tuple[Pair, str, list[str]]) -> None:
    """Page by page the same rows as at once, in every order."""
    both, prefix, _ = registry
    for kind, orders in (
        ("registered-models", ([], ["name DESC"], ["timestamp DESC"], ["timestamp"])),
        ("model-versions", ([], ["name DESC", "version_number"], ["creation_timestamp"])),
    ):
        for order_by in orders:
            query = {"filter": f"name LIKE '{prefix}%'", "order_by": order_by}
            rows = kind.replace("-", "_")
            whole = both.product.send(get(f"{kind}/search", query)).body[rows]
            results, token = [], ""
            while True:
                more = {"max_results": 2, **({"page_token": token} if token else {})}
                page = both.product.send(get(f"{kind}/search", {**query, **more})).body
                results += page.get(rows, [])
                token = page.get("next_page_token", "")
                if not token:
                    break
            assert results == whole


@pytest.mark.parametrize("kind", ["registered-models", "model-versions"])
def test_limits(both: Pair, kind: str) -> None:
    text = "name LIKE 'nothing%'"
    # Of models, MLflow's server takes such numbers and answers nonsense.
    numbers = [0, -1] if kind == "model-versions" else []
    both.send_all(
        [
            get(f"{kind}/search", filter=text, **more)
            for more in (
                {"page_token": "zz"},
                {"order_by": "tags.x"},
                {"order_by": "run_id"},
                {"order_by": "creation_timestamp"},
                {"order_by": "timestamp"},
                {"order_by": "attributes.name"},
                {"order_by": "attributes.timestamp DESC"},
                {"order_by": "tag.x"},
                {"order_by": "metrics.m"},
            )
        ]
        + [
            get(f"{kind}/search", filter=text, max_results=number)
            for number in (*numbers, 1001, 200_001, "x")
        ]
    )
