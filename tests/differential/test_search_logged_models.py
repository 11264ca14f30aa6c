"""Searches of logged models give stock MLflow's models in stock MLflow's order."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest

from mlcore.entities.logged_models import LoggedModel, ModelMetric
from mlcore.errors import BadRequest, InvalidParameterValue
from mlcore.search import logged_models as language
from tests.differential.stock import COUNT, REFUSED, SEED, answer, mlflow_entities, open_store

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.filterwarnings("ignore")

POPULATIONS = max(2, COUNT // 100)
MODELS = 20
TEXTS = ("a", "A", "ab", "b", "é", "10", "")
KEYS = ("k", "a b", "é")
VALUES = (-1.5, 0.0, 1.0, 1.0, 7.25, 1e300, float("inf"), float("nan"))
DATASETS = ((None, None), ("d", "1"), ("d", "2"), ("e", "1"))
FIELDS = (
    "name",
    "model_type",
    "creation_time",
    "metrics.k",
    "metrics.é",
    "source_run_id",
    "status",
)


def _fill(store: Any, rng: random.Random) -> tuple[str, list[LoggedModel]]:
    made = mlflow_entities
    experiment_id = store.create_experiment(f"models {rng.random()}")
    runs = [
        store.create_run(experiment_id, "u", 1, [], f"run {number}").info.run_id
        for number in range(2)
    ]
    models = []
    for _ in range(MODELS):
        model = store.create_logged_model(
            experiment_id,
            rng.choice(TEXTS) or "name",
            rng.choice((*runs, "")),
            [made.LoggedModelTag(key, rng.choice(TEXTS)) for key in KEYS if rng.random() < 0.5],
            [
                made.LoggedModelParameter(key, rng.choice(TEXTS))
                for key in KEYS
                if rng.random() < 0.5
            ],
            rng.choice(TEXTS),
        )
        if rng.random() < 0.5:
            store.finalize_logged_model(model.model_id, made.LoggedModelStatus.READY)
        for step in range(rng.randrange(5)):
            name, digest = rng.choice(DATASETS)
            run_id = rng.choice(runs)
            store.log_metric(
                run_id,
                made.Metric(
                    rng.choice(KEYS[::2]),
                    rng.choice(VALUES),
                    rng.randrange(3),
                    step,
                    model_id=model.model_id,
                    dataset_name=name,
                    dataset_digest=digest,
                    run_id=run_id,
                ),
            )
        models.append(_model(store.get_logged_model(model.model_id)))
    return experiment_id, models


def _model(model: Any) -> LoggedModel:
    return LoggedModel(
        model_id=model.model_id,
        experiment_id=model.experiment_id,
        name=model.name,
        artifact_location=model.artifact_location,
        creation_time=model.creation_timestamp,
        last_update_time=model.last_updated_timestamp,
        status=f"LOGGED_MODEL_{model.status}",
        lifecycle_stage="active",
        model_type=model.model_type,
        source_run_id=model.source_run_id,
        params=dict(model.params),
        tags=dict(model.tags),
        metrics=tuple(
            ModelMetric(
                *(metric.key, metric.value, metric.timestamp, metric.step),
                *(metric.run_id, metric.dataset_name, metric.dataset_digest),
            )
            for metric in model.metrics or ()
        ),
    )


def _clause(rng: random.Random) -> str:
    key = rng.choice(("k", "`a b`", "é", "`k`", "none"))
    text = rng.choice(("'{}'", "'{}'", "{}", '"{}"')).format(
        rng.choice(("a", "%b", "A", "10", "é"))
    )
    kind = rng.random()
    if kind < 0.35:
        sign = rng.choice(("<", "<=", ">", ">=", "=", "!=", "LIKE"))
        return f"metrics.{key} {sign} {rng.choice(('0', '1.0', '-1.5', '1e10', '7.25', 'nan'))}"
    sign = rng.choice(("=", "!=", "LIKE", "ILIKE", "like", "IN", "NOT IN", "<", "RLIKE"))
    if "IN" in sign:
        text = rng.choice(("('a')", "('a', 'A')", "('10','é')", "()"))
    if kind < 0.75:
        return f"{rng.choice(('params', 'tags'))}.{key} {sign} {text}"
    field = rng.choice(("name", "attributes.name", "model_type", "source_run_id", "status"))
    return f"{field} {sign} {text}"


def _ours(
    models: list[LoggedModel],
    text: str,
    datasets: list[dict[str, str]],
    order_by: list[dict[str, Any]],
) -> Any:
    named = [
        language.MetricDataset(dataset["dataset_name"], dataset["dataset_digest"])
        for dataset in datasets
    ]
    try:
        holds = language.predicate(language.parse_filter(text), named)
        ordering = [
            language.parse_order(
                clause["field_name"],
                clause["ascending"],
                language.MetricDataset(
                    clause.get("dataset_name", ""), clause.get("dataset_digest")
                ),
            )
            for clause in order_by
        ]
    except (InvalidParameterValue, BadRequest):
        return REFUSED
    return [
        model.model_id
        for model in sorted(filter(holds, models), key=language.sort_key(ordering, named))
    ]


def test_random_searches(folder_in_memory: Path) -> None:
    rng = random.Random(SEED)
    store = open_store(folder_in_memory)
    populations = [_fill(store, rng) for _ in range(POPULATIONS)]
    matched = 0
    for _ in range(COUNT // 2):
        experiment_id, models = rng.choice(populations)
        clauses = [_clause(rng) for _ in range(rng.choice((0, 1, 1, 2, 3)))]
        text = rng.choice((" AND ", " and ")).join(clauses)
        datasets = [
            {"dataset_name": name, "dataset_digest": digest}
            for name, digest in rng.sample(DATASETS[1:], rng.choice((0, 0, 0, 1, 2)))
        ]
        order_by: list[dict[str, Any]] = []
        for field in rng.sample(FIELDS, rng.choice((0, 1, 1, 2))):
            order: dict[str, Any] = {"field_name": field, "ascending": rng.random() < 0.5}
            if field.startswith("metrics.") and rng.random() < 0.5:
                order.update(dataset_name="d", dataset_digest=rng.choice(("1", None)))
            order_by.append(order)
        results, _ = answer(
            store.search_logged_models, [experiment_id], text, datasets or None, 100, order_by
        )
        stock = results if results == REFUSED else [model.model_id for model in results]
        assert _ours(models, text, datasets, order_by) == stock, (text, datasets, order_by)
        matched += stock != REFUSED and 0 < len(stock) < MODELS
    assert matched > COUNT / 20
