from __future__ import annotations

import math
from typing import Any

import pytest

from mlcore.entities.metrics import Metric
from mlcore.entities.runs import Dataset, DatasetInput, Run
from mlcore.entities.tags import Tag
from mlcore.search import fields, grammar, match

_INPUTS = (
    DatasetInput(Dataset("iris", "1", "local", "{}"), (Tag("mlflow.data.context", "train"),)),
    DatasetInput(Dataset("wine", "2", "local", "{}"), ()),
)


def run(**changed: Any) -> Run:
    base = Run(
        run_id="r1",
        experiment_id="0",
        run_name="Name",
        user_id="",
        status="FINISHED",
        start_time=10,
        end_time=None,
        artifact_uri="s3://b/r1",
        lifecycle_stage="active",
        metrics={"a": Metric("a", 1.0, 0, 0), "nan": Metric("nan", math.nan, 0, 0)},
        params={"p": "x", "empty": ""},
        tags={"mlflow.runName": "Name", "t": "É"},
        dataset_inputs=_INPUTS,
    )
    return base._replace(**changed)


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("", True),
        ("metrics.a = 1", True),
        ("metrics.a > 1", False),
        ("metrics.b != 1", False),
        ("metrics.nan != 0", True),
        ("metrics.nan = 0", False),
        ("metrics.nan < 1", False),
        ("params.p != 'y'", True),
        ("params.q != 'y'", False),
        ("params.empty = ''", True),
        ("params.empty LIKE '%'", True),
        ("params.q IS NULL", True),
        ("params.p IS NOT NULL AND tags.x IS NULL", True),
        ("run_name LIKE 'n%'", False),
        ("run_name ILIKE 'n%'", True),
        ("tags.t ILIKE 'é'", False),
        ("end_time != 5", False),
        ("user_id = ''", True),
        ("run_id NOT IN ('r2')", True),
        ("dataset.name = 'iris' AND dataset.name = 'wine'", True),
        ("dataset.name = 'wine' AND dataset.context = 'train'", True),
        ("dataset.context != 'train'", False),
        ("dataset.digest IN ('2', '3')", True),
    ],
)
def test_runs(text: str, holds: bool) -> None:
    test = match.predicate(grammar.parse_filter(text, fields.RUN), fields.RUN)
    assert test(run()) is holds


def test_the_name_is_the_tag() -> None:
    test = match.predicate(grammar.parse_filter("run_name = 'Name'", fields.RUN), fields.RUN)
    assert not test(run(tags={}))
