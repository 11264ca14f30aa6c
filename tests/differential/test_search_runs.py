"""Searches of runs give stock MLflow's runs in stock MLflow's order."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from mlcore import reserved_tags
from mlcore.entities.metrics import Metric, stored_value
from mlcore.entities.runs import Dataset, DatasetInput, Run
from mlcore.entities.tags import Tag
from mlcore.errors import InvalidParameterValue
from mlcore.search import fields, grammar, match
from tests.differential import search_samples as samples
from tests.differential.stock import COUNT, REFUSED, SEED, answer, mlflow_entities, open_store

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.filterwarnings("ignore")

POPULATIONS = max(1, COUNT // 50)
RUNS = 25


def _fill(store: Any, rng: random.Random) -> tuple[str, tuple[Run, ...]]:
    made = mlflow_entities
    experiment_id = store.create_experiment(f"population {rng.random()}")
    runs = []
    for _ in range(RUNS):
        run = store.create_run(
            experiment_id,
            user_id=rng.choice(samples.TEXTS),
            start_time=rng.choice(samples.TIMES),
            tags=[],
            run_name=rng.choice(samples.TEXTS) or "name",
        )
        run_id = run.info.run_id
        if rng.random() < 0.6:
            store.update_run_info(
                run_id,
                made.RunStatus.from_string(rng.choice(samples.STATUSES)),
                rng.choice((None, *samples.TIMES)),
                None,
            )
        keys = [key for key in samples.KEYS if rng.random() < 0.5]
        store.log_batch(
            run_id,
            [made.Metric(key, rng.choice(samples.METRIC_VALUES), 1, 0) for key in keys],
            [
                made.Param(key, rng.choice(samples.TEXTS))
                for key in samples.KEYS
                if rng.random() < 0.5
            ],
            [
                made.RunTag(key, rng.choice(samples.TEXTS))
                for key in samples.KEYS
                if rng.random() < 0.5
            ],
        )
        if rng.random() < 0.1:
            store.delete_tag(run_id, "mlflow.runName")
        store.log_inputs(run_id, [_input(rng) for _ in range(rng.choice((0, 0, 1, 2, 3)))])
        runs.append(_run(store.get_run(run_id)))
    return experiment_id, tuple(runs)


def _input(rng: random.Random) -> Any:
    made = mlflow_entities
    tags = []
    if rng.random() < 0.7:
        tags.append(made.InputTag(reserved_tags.DATASET_CONTEXT, rng.choice(("a", "AB", "é"))))
    if rng.random() < 0.3:
        tags.append(made.InputTag("other", "a"))
    name, digest = rng.choice(("a", "b", "AB", "é")), rng.choice(("a", "ab", "é"))
    return made.DatasetInput(made.Dataset(name, digest, "local", "{}"), tags)


def _run(run: Any) -> Run:
    info, data = run.info, run.data
    return Run(
        run_id=info.run_id,
        experiment_id=info.experiment_id,
        run_name=info.run_name,
        user_id=info.user_id,
        status=info.status,
        start_time=info.start_time,
        end_time=info.end_time,
        artifact_uri=info.artifact_uri,
        lifecycle_stage=info.lifecycle_stage,
        metrics={
            key: Metric(key, stored_value(value), 1, 0) for key, value in data.metrics.items()
        },
        params=dict(data.params),
        tags=dict(data.tags),
        dataset_inputs=tuple(
            DatasetInput(
                Dataset(dataset_input.dataset.name, dataset_input.dataset.digest, "local", "{}"),
                tuple(Tag(tag.key, tag.value) for tag in dataset_input.tags),
            )
            for dataset_input in run.inputs.dataset_inputs
        ),
    )


def _ours(runs: tuple[Run, ...], made: samples.Made) -> Any:
    try:
        order = grammar.parse_order_by(made.order_by, fields.RUN)
        test = match.predicate(grammar.parse_filter(made.filter, fields.RUN), fields.RUN)
    except InvalidParameterValue:
        return REFUSED
    key = match.sort_key(order, fields.RUN)
    matching = sorted(filter(test, runs), key=key)
    assert all(key(run) < key(other) for run, other in pairwise(matching)), made
    return [run.run_id for run in matching]


def test_runs(folder_in_memory: Path) -> None:
    rng = random.Random(SEED)
    store: Any = open_store(folder_in_memory)

    def stock(experiment_id: str, made: samples.Made) -> list[str]:
        results = store.search_runs([experiment_id], made.filter, 1, 1000, made.order_by)
        return [run.info.run_id for run in results]

    matched = refused = 0
    for _ in range(POPULATIONS):
        experiment_id, runs = _fill(store, rng)
        ids = tuple(run.run_id for run in runs)
        uris = tuple(run.artifact_uri for run in runs)
        for _ in range(COUNT // POPULATIONS):
            made = samples.run_search(rng, ids, uris)
            theirs, words = answer(stock, experiment_id, made)
            ours = _ours(runs, made)
            assert ours == theirs, (made, words)
            refused += theirs == REFUSED
            matched += theirs not in (REFUSED, [])
    assert matched > COUNT / 3
    assert refused < COUNT / 3
