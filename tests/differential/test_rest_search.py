"""Random searches of random runs and experiments find the same things in the same order."""

from __future__ import annotations

import os
import random
import re
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest

from tests.differential import population
from tests.differential import search_samples as samples
from tests.differential.pair import Pair
from tests.differential.rest import Call, Ref, post
from tests.differential.search_pairs import VIEWS, Found, Searcher

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1800)]

SEARCHES = int(os.environ.get("REST_SEARCHES", "30"))
"""Searches of runs; of experiments half as many."""
SEED = int(os.environ.get("REST_SEED", "1"))
SMALL, LARGE = 12, 320
"""Runs of the small experiments and of the large one, which the product reads in another way."""
# Ids are chosen by the servers, so nothing can depend on how they look.
_BY_ID = re.compile(
    r"(run_id|artifact_uri|experiment_id|run.id)[`'\"]?\s*(NOT\s+)?I?LIKE", re.IGNORECASE
)
_ID_ORDER = re.compile(r"run_id|artifact_uri|run\.id", re.IGNORECASE)


def compare(
    both: Pair, path: str, rows: str, count: int, make: Callable[[], dict[str, Any]]
) -> None:
    stock, product = Searcher(both.stock), Searcher(both.product)
    differences = []
    with_rows = refused = reworded = 0
    for _ in range(count):
        body = make()
        theirs = stock.all_pages(path, body, rows)
        ours = product.all_pages(path, body, rows)
        with_rows += bool(theirs.labels)
        refused += theirs.error is not None
        if theirs == ours or _meant(theirs, ours):
            continue
        if _reworded(theirs, ours):
            reworded += 1
        else:
            differences.append(f"{body}\n  stock {theirs}\n  ours  {ours}")
    assert not differences, f"{len(differences)} differences\n" + "\n".join(differences[:10])
    assert with_rows > count / 4
    assert refused < count / 2
    assert reworded <= 3 + count / 20


def _reworded(theirs: Found, ours: Found) -> bool:
    """Both refuse. Of several mistakes each may name another, or show stray tokens differently."""
    if theirs.error is None or ours.error is None:
        return False
    return theirs.error._replace(body=None) == ours.error._replace(body=None) and (
        theirs.error.code == ours.error.code
    )


def _meant(theirs: Found, ours: Found) -> bool:
    """Stock's answer to some texts is 500, and it has numbers where the product has any text."""
    if theirs.error is None or (ours.error is not None and ours.error.status != 400):
        return False
    return (
        theirs.error.status >= 500
        or "Experiment ID must be a valid integer" in theirs.error.message
    )


def test_runs(both: Pair) -> None:
    rng = random.Random(SEED)
    prefix = uuid4().hex[:8]
    experiments = [f"experiment {number}" for number in range(4)]
    runs: list[str] = []
    calls: list[Call] = []
    for number, experiment in enumerate(experiments):
        calls.append(population.experiment(experiment, f"search {prefix} {number}"))
        size = SMALL if number else LARGE
        labels = [f"run {len(runs) + index}" for index in range(size)]
        calls += population.runs(rng, experiment, labels)
        runs += labels
    population.fill(both, calls)
    ids = tuple(f"{{{{{label}}}}}" for label in runs)
    uris = tuple(
        f"mlflow-artifacts:/{{{{experiment 0}}}}/{run_id}/artifacts" for run_id in ids[:40]
    )

    def make() -> dict[str, Any]:
        while True:
            if rng.random() < 0.75:
                text, order = samples.run_search(rng, ids, uris)
            else:
                text = samples.any_filter(rng)
                order = [samples.any_order(rng)] if rng.random() < 0.3 else []
            order = [clause for clause in order if not _ID_ORDER.search(clause)]
            if not _BY_ID.search(text):
                break
        inside = rng.sample(experiments, rng.choice((1, 1, 2, 4)))
        return {
            "experiment_ids": [f"{{{{{label}}}}}" for label in inside],
            "filter": text,
            "order_by": order,
            "run_view_type": rng.choice(VIEWS),
            "max_results": rng.choice((90, 150, 400, 1000)),
        }

    compare(both, "runs/search", "runs", SEARCHES, make)


def test_experiments(both: Pair) -> None:
    rng = random.Random(SEED)
    prefix = uuid4().hex[:8]
    labels = [f"experiment {number}" for number in range(40)]
    names = [f"{prefix} {number} {rng.choice(samples.TEXTS)}" for number in range(40)]
    calls: list[Call] = []
    for label, name in zip(labels, names, strict=True):
        tags = [
            {"key": key, "value": rng.choice(samples.TEXTS)}
            for key in samples.KEYS
            if rng.random() < 0.4
        ]
        body = {"name": name, "tags": tags}
        calls.append(post("experiments/create", body, saves={label: "experiment_id"}))
    for label in rng.sample(labels, 8):
        calls.append(post("experiments/delete", {"experiment_id": Ref(label)}))
    population.fill(both, calls)
    ids = tuple(f"{{{{{label}}}}}" for label in labels)

    def make() -> dict[str, Any]:
        while True:
            if rng.random() < 0.75:
                text, order = samples.experiment_search(rng, ids, tuple(names))
            else:
                text = samples.any_filter(rng)
                order = [samples.any_order(rng)] if rng.random() < 0.3 else []
            if not _BY_ID.search(text):
                break
        own = f"name LIKE '{prefix}%'"
        return {
            "filter": f"{own} AND {text}" if text else own,
            "order_by": order,
            "view_type": rng.choice(VIEWS),
            "max_results": rng.choice((7, 20, 1000)),
        }

    compare(both, "experiments/search", "experiments", SEARCHES // 2, make)
