"""Experiments are found by their names as by looking at all of them, and at less cost."""

from __future__ import annotations

import random

from mlcore.search import fields, grammar
from mlcore.search.match import predicate
from tests.contract.conftest import EXAMPLES, Store
from tests.differential.search_samples import quoted

NAMES = (
    *("churn", "Churn 2", "churn/é", "a churn", "AN%D", "and_", "x" * 490 + "churn", "é" * 495),
    *("Ünïcode#", "b", "zz top", "ß" * 300),
)


def test_names_are_found_wherever_the_pattern_is(shared_store: Store) -> None:
    api = shared_store.api
    made = {api.new_experiment(name): name for name in NAMES}
    api.post("experiments/update", experiment_id=next(iter(made)), new_name="renamed churn")
    made[next(iter(made))] = "renamed churn"
    made["0"] = "Default"
    rng = random.Random(3)
    for _ in range(150 * EXAMPLES):
        name = rng.choice([*made.values(), "churn"])
        begin = rng.randrange(len(name))
        piece = name[begin : begin + rng.choice((1, 3, 600))]
        pattern = rng.choice(("", "%", "_")) + piece + rng.choice(("", "%", "_"))
        operator, value = rng.choice(
            (
                ("LIKE", pattern),
                ("ILIKE", pattern),
                ("=", name),
                ("!=", name),
                ("LIKE", piece + "%"),
            )
        )
        text = f"name {operator} {quoted(rng, value)}"
        if rng.random() < 0.2:
            text += " AND name LIKE '%c%'"
        body = {"filter": text, "max_results": 100}
        experiments = api.post("experiments/search", **body).get("experiments", [])
        assert {experiment["experiment_id"] for experiment in experiments} == _brute(made, text), (
            text
        )


def _brute(made: dict[str, str], text: str) -> set[str]:
    matches = predicate(
        [
            condition._replace(key="experiment_id")
            for condition in grammar.parse_filter(text, fields.EXPERIMENT)
        ],
        fields.EXPERIMENT,
    )

    class Named:
        def __init__(self, name: str) -> None:
            self.experiment_id = name

    return {experiment_id for experiment_id, name in made.items() if matches(Named(name))}


def test_an_infix_reads_the_names_and_the_matches(store: Store) -> None:
    api = store.api
    for n in range(60):
        api.new_experiment(
            f"{'churn' if n % 20 == 0 else 'other'} {n}", tags=[{"key": "t", "value": "v" * 4000}]
        )
    api.post("experiments/search", filter="name LIKE '%hur%'", max_results=100)
    assert api.cost.read_units < 20
    api.post("experiments/search", filter="name = 'churn 20'", max_results=100)
    assert api.cost.read_units < 8
    api.post("experiments/search", filter="tags.t != 'w'", max_results=100)
    assert api.cost.read_units > 60
