"""Searches of experiments give stock MLflow's experiments in stock MLflow's order."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest

from mlcore.entities.experiments import Experiment
from mlcore.errors import InvalidParameterValue
from mlcore.search import fields, grammar, match
from tests.differential import search_samples as samples
from tests.differential.stock import COUNT, REFUSED, SEED, answer, mlflow_entities, open_store

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.filterwarnings("ignore")


def _fill(store: Any, rng: random.Random) -> tuple[Experiment, ...]:
    made = mlflow_entities
    names = [text for text in samples.TEXTS if text.strip() and "\\" not in text]
    experiments = []
    for name in names:
        tags = [
            made.ExperimentTag(key, rng.choice(samples.TEXTS))
            for key in samples.KEYS
            if rng.random() < 0.5
        ]
        experiment_id = store.create_experiment(name, tags=tags)
        with store.ManagedSessionMaker(read_only=False) as session:
            row = store._get_experiment(session, experiment_id, 1)
            row.creation_time, row.last_update_time = (
                rng.choice(samples.TIMES),
                rng.choice(samples.TIMES),
            )
        experiments.append(store.get_experiment(experiment_id))
    experiments.append(store.get_experiment("0"))
    return tuple(
        Experiment(
            experiment.experiment_id,
            experiment.name,
            experiment.artifact_location,
            experiment.lifecycle_stage,
            experiment.creation_time,
            experiment.last_update_time,
            dict(experiment.tags),
            "default",
        )
        for experiment in experiments
    )


def _ours(experiments: tuple[Experiment, ...], made: samples.Made) -> Any:
    try:
        order = grammar.parse_order_by(made.order_by, fields.EXPERIMENT)
        comparisons = grammar.parse_filter(made.filter, fields.EXPERIMENT)
    except InvalidParameterValue:
        return REFUSED
    matching = filter(match.predicate(comparisons, fields.EXPERIMENT), experiments)
    key = match.sort_key(order, fields.EXPERIMENT)
    return [int(experiment.experiment_id) for experiment in sorted(matching, key=key)]


def test_experiments(folder_in_memory: Path) -> None:
    rng = random.Random(SEED)
    store: Any = open_store(folder_in_memory)
    experiments = _fill(store, rng)
    ids = tuple(experiment.experiment_id for experiment in experiments)
    names = tuple(experiment.name for experiment in experiments)

    def stock(made: samples.Made) -> list[int]:
        results = store.search_experiments(1, 1000, made.filter, made.order_by)
        return [int(experiment.experiment_id) for experiment in results]

    matched = 0
    for _ in range(COUNT):
        made = samples.experiment_search(rng, ids, names)
        theirs, words = answer(stock, made)
        ours = _ours(experiments, made)
        assert ours == theirs, (made, words)
        matched += theirs not in (REFUSED, [])
    assert matched > COUNT / 3
