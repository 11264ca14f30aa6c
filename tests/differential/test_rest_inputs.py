"""Stories of datasets, model inputs and outputs."""

from __future__ import annotations

from typing import Any

import pytest

from tests.differential.calls import (
    UNKNOWN,
    E,
    R,
    experiment,
    get_run,
    pairs,
    run,
)
from tests.differential.pair import Pair
from tests.differential.rest import AJAX, Call, Ref, post

pytestmark = pytest.mark.e2e


def test_inputs_and_outputs(both: Pair) -> None:
    def dataset(**more: Any) -> dict[str, Any]:
        return {"name": "d", "digest": "1", "source_type": "local", "source": "s", **more}

    def inputs(*datasets: Any, to: Any = R, **more: Any) -> Call:
        return post("runs/log-inputs", {"run_id": to, "datasets": list(datasets), **more})

    def given(tags: Any = None, **more: Any) -> dict[str, Any]:
        return {"dataset": dataset(**more), **({"tags": tags} if tags is not None else {})}

    context = pairs(**{"mlflow.data.context": "train"})
    again = frozenset({"repeated output"})

    def outputs(*models: Any, permits: frozenset[str] = frozenset()) -> Call:
        return post("runs/outputs", {"run_id": R, "models": list(models)}, permits=permits)

    summaries = [
        Call("POST", AJAX + "experiments/search-datasets", {"experiment_ids": ids})
        for ids in (
            [E],
            [Ref("elsewhere")],
            [E, Ref("elsewhere")],
            [],
            ["98765432"],
            [str(n) for n in range(21)],
        )
    ]
    both.send_all(
        [
            experiment(),
            experiment("elsewhere"),
            run(),
            run("second", start_time=2),
            run("third", "elsewhere"),
            inputs(given(context)),
            inputs(given(context)),
            inputs(given(pairs(other="1"))),
            inputs(given(source="changed", schema="s")),
            get_run(),
            inputs(given(source="changed"), to=Ref("second")),
            get_run(Ref("second")),
            inputs(given(source="elsewhere"), to=Ref("third")),
            get_run(Ref("third")),
            inputs(
                given(name="z", schema="schema", profile="profile"),
                given(pairs(z="1", a="2", b="3"), name="a", schema="", profile=""),
            ),
            inputs(given(pairs(a="1"), name="q"), given(pairs(b="2"), name="q")),
            get_run(),
            inputs(given([*pairs(a="1"), *pairs(a="2")], name="w")),
            inputs(),
            *(
                inputs(given(**{field: "x" * size}))
                for field, limit in (
                    ("name", 500),
                    ("digest", 36),
                    ("source", 65_535),
                    ("schema", 1_048_575),
                )
                for size in (limit, limit + 1)
            ),
            *(
                inputs(given(name=f"t{number}", tags=[tag]))
                for number, tag in enumerate(
                    (
                        {"key": "k" * 255, "value": ""},
                        {"key": "k" * 256, "value": ""},
                        {"key": "k", "value": "v" * 500},
                        {"key": "k", "value": "v" * 501},
                        {"key": "a$b", "value": "v"},
                    )
                )
            ),
            inputs(models=[{"model_id": "m-1"}]),
            inputs(models=[{"model_id": "m-1"}, {"model_id": "m-0"}]),
            get_run(),
            outputs({"model_id": "m-2", "step": 3}),
            outputs({"model_id": "m-2", "step": 3}, permits=again),
            outputs({"model_id": "m-3", "step": -1}, {"model_id": "m-1", "step": 0}),
            outputs(),
            get_run(),
            post(
                "runs/search",
                {"experiment_ids": [E], "filter": "dataset.name = 'd'", "order_by": ["start_time"]},
            ),
            *summaries,
            inputs(given(), to=UNKNOWN),
            inputs(given(), to="a b"),
        ]
    )
