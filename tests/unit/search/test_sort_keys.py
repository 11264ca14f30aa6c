from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlcore.entities.experiments import Experiment
from mlcore.entities.metrics import Metric
from mlcore.entities.runs import Run
from mlcore.errors import InvalidParameterValue
from mlcore.search import fields, grammar
from mlcore.search.sort_keys import inverted_text, restore_key, sort_key, sortable_experiment_id


def run(run_id: str, metric: float | None = None, param: str | None = None, start: int = 0) -> Run:
    return Run(
        run_id=run_id,
        experiment_id="0",
        run_name="",
        user_id="",
        status="RUNNING",
        start_time=start,
        end_time=None,
        artifact_uri="",
        lifecycle_stage="active",
        metrics={} if metric is None else {"m": Metric("m", metric, 0, 0)},
        params={} if param is None else {"p": param},
        tags={},
    )


def ordered(runs: list[Run], *orders: str) -> str:
    key = sort_key(grammar.parse_order_by(orders, fields.RUN), fields.RUN)
    return "".join(run.run_id for run in sorted(runs, key=key))


def test_default_is_newest_first_then_by_id() -> None:
    assert ordered([run("b", start=1), run("a", start=1), run("c", start=2)]) == "cab"


def test_missing_is_last_and_nan_before_it() -> None:
    runs = [run("a"), run("b", math.nan), run("c", 1.0), run("d", -1.0), run("e", 2.0)]
    assert ordered(runs, "metrics.m") == "dceba"
    assert ordered(runs, "metrics.m DESC") == "ecdba"


def test_texts_descend_and_the_missing_stay_last() -> None:
    runs = [run("a", param=""), run("b", param="x"), run("c", param="xy"), run("d")]
    assert ordered(runs, "params.p DESC") == "cbad"
    assert ordered(runs, "params.p") == "abcd"


def test_ties_go_by_the_tie_break() -> None:
    runs = [run("b", 1.0, start=1), run("a", 1.0, start=1), run("c", 1.0, start=2)]
    assert ordered(runs, "metrics.m") == "cab"
    assert ordered(runs, "metrics.m", "run_id DESC", "start_time ASC") == "cba"


def test_experiments() -> None:
    experiments = [
        Experiment(str(number), name, "", "active", time, 0, {}, "default")
        for number, name, time in ((0, "x", 1), (1, "y", 1), (2, "x", 2))
    ]

    def ids(*orders: str) -> list[str]:
        parsed = grammar.parse_order_by(orders, fields.EXPERIMENT)
        ordered = sorted(experiments, key=sort_key(parsed, fields.EXPERIMENT))
        return [experiment.experiment_id for experiment in ordered]

    assert ids() == ["2", "0", "1"]
    assert ids("name") == ["2", "0", "1"]
    assert ids("name DESC", "experiment_id ASC") == ["1", "0", "2"]


def test_ids_of_experiments_are_numbers() -> None:
    old = ("01JCAB3DEFGHJKMNPQRSTVWXYZ", "01JCAB3DEFGHJKMNPQRSTVWXZ0")
    ordered = ["0", *old, *map(str, range(1, 120)), str(2**31), "823149582371645290"]
    assert sorted(ordered, key=sortable_experiment_id) == ordered
    for ascending in (True, False):
        entries = grammar.parse_order_by(
            ["experiment_id" if ascending else "experiment_id DESC"], fields.EXPERIMENT
        )
        key_of = sort_key(entries, fields.EXPERIMENT)
        experiments = sorted(
            (Experiment(experiment_id, "", "", "", 0, 0, {}, "") for experiment_id in ordered),
            key=key_of,
        )
        listed = [experiment.experiment_id for experiment in experiments]
        assert listed == (ordered if ascending else ordered[::-1])
        for experiment in experiments:
            key = key_of(experiment)
            assert restore_key(json.loads(json.dumps(key)), entries, fields.EXPERIMENT) == key


@given(st.text(), st.text())
def test_descending_inverts_the_order_of_texts(text: str, other: str) -> None:
    assert (text < other) == (inverted_text(text) > inverted_text(other))
    assert (text == other) == (inverted_text(text) == inverted_text(other))


@given(st.floats(allow_infinity=False), st.text())
def test_a_key_survives_its_page_token(value: float, param: str) -> None:
    order = grammar.parse_order_by(["metrics.m DESC", "params.p DESC"], fields.RUN)
    key = sort_key(order, fields.RUN)(run("a", value, param))
    assert restore_key(json.loads(json.dumps(key)), order, fields.RUN) == key


@pytest.mark.parametrize(
    "values",
    [None, {}, [], [0, 1], [0, "x", 0, "a"], [0, 5, 0, 5], [7, 5, 0, "a"], ["0", 5, 0, "a"]],
)
def test_a_forged_key_is_refused(values: object) -> None:
    with pytest.raises(InvalidParameterValue):
        restore_key(values, (), fields.RUN)
