"""Stories of experiments: names, lifecycle, locations and tags."""

from __future__ import annotations

from typing import Any

import pytest

from tests.differential.calls import (
    E,
    experiment,
    get_run,
    log_metric,
    name,
    pairs,
    run,
)
from tests.differential.pair import Pair
from tests.differential.rest import Call, Ref, get, post

pytestmark = pytest.mark.e2e


def test_experiments(both: Pair) -> None:
    first, second = name(), name()
    both.send_all(
        [
            get("experiments/get", experiment_id="0"),
            post(
                "experiments/create",
                {"name": first, "tags": pairs(z="1", a="2")},
                saves={"experiment": "experiment_id"},
            ),
            post("experiments/create", {"name": first}),
            get("experiments/get-by-name", experiment_name=first),
            post(
                "experiments/create",
                {"name": second, "artifact_location": "s3://bucket/x"},
                saves={"second": "experiment_id"},
            ),
            get("experiments/get", experiment_id=Ref("second")),
            run("other", "second"),
            post("experiments/update", {"experiment_id": E, "new_name": second}),
            post("experiments/update", {"experiment_id": E, "new_name": first}),
            post("experiments/restore", {"experiment_id": E}),
            run("kept"),
            run("gone"),
            post("runs/delete", {"run_id": Ref("gone")}),
            post("experiments/delete", {"experiment_id": E}),
            post("experiments/delete", {"experiment_id": E}),
            get("experiments/get", experiment_id=E),
            get("experiments/get-by-name", experiment_name=first),
            post("experiments/create", {"name": first}),
            post("experiments/update", {"experiment_id": Ref("second"), "new_name": first}),
            post("experiments/update", {"experiment_id": E, "new_name": name()}),
            post("experiments/set-experiment-tag", {"experiment_id": E, "key": "k", "value": "v"}),
            post("experiments/delete-experiment-tag", {"experiment_id": E, "key": "z"}),
            run("refused_run_has_no_id")._replace(saves=None),
            get_run(Ref("kept")),
            get_run(Ref("gone")),
            log_metric("m", 1, to=Ref("kept")),
            post("runs/search", {"experiment_ids": [E]}),
            post("runs/search", {"experiment_ids": [E], "run_view_type": "ACTIVE_ONLY"}),
            post("runs/restore", {"run_id": Ref("kept")}),
            get_run(Ref("kept")),
            log_metric("m", 1, to=Ref("kept")),
            post("runs/delete", {"run_id": Ref("kept")}),
            get_run(Ref("kept")),
            post("experiments/restore", {"experiment_id": E}),
            get_run(Ref("kept")),
            get_run(Ref("gone")),
            log_metric("m", 2, 5, to=Ref("gone")),
            post("experiments/restore", {"experiment_id": E}),
            get("experiments/get", experiment_id=E),
            *(
                post(f"experiments/{path}", {"experiment_id": "98765432", **more})
                for path, more in (
                    ("delete", {}),
                    ("restore", {}),
                    ("update", {"new_name": name()}),
                    ("set-experiment-tag", {"key": "k", "value": "v"}),
                    ("delete-experiment-tag", {"key": "k"}),
                )
            ),
            get("experiments/get-by-name", experiment_name="no such"),
        ]
    )


def test_default_experiment_can_be_deleted_and_restored(both: Pair) -> None:
    both.send_all(
        [
            post("experiments/delete", {"experiment_id": "0"}),
            get("experiments/get", experiment_id="0"),
            post("experiments/restore", {"experiment_id": "0"}),
            get("experiments/get-by-name", experiment_name="Default"),
        ]
    )


@pytest.mark.parametrize(
    "location",
    [
        "",
        "s3://b/x",
        "s3://b/x/",
        "s3://b/x#f",
        "s3://b/x?y=1",
        "s3://b/../x",
        "http://h/x",
        "https://h/x",
        "ftp://h/x",
        "runs:/x",
        "mlflow-artifacts:/x",
        "mlflow-artifacts:/x/",
        "gs://b/x",
        "hdfs://h/x",
        "dbfs:/x",
        "S3://b/x",
        "s3://b/%2e%2e/x",
    ],
)
def test_artifact_location(both: Pair, location: str) -> None:
    both.send_all([experiment(artifact_location=location)._replace(saves=None)])
    both.send_all(
        [experiment(artifact_location=location), run(), get("experiments/get", experiment_id=E)]
        if location.startswith(("s3://b/x", "mlflow")) and "#" not in location
        else []
    )


def test_experiment_tags(both: Pair) -> None:
    def set_tag(key: Any, value: Any) -> Call:
        return post(
            "experiments/set-experiment-tag", {"experiment_id": E, "key": key, "value": value}
        )

    keys = (
        "k",
        "é/x: y",
        "a$",
        "../a",
        "/a",
        "a/",
        ".",
        "a//b",
        "k" * 250,
        "k" * 251,
        "a\n",
        "a\tb",
        "mlflow.note.content",
        "a,b",
        "a#b",
        "..a",
        "...",
        "a/./b",
        " ",
        " a ",
    )
    both.send_all(
        [
            experiment(),
            *(set_tag(key, "v") for key in keys),
            *(set_tag("long", "v" * size) for size in (5000, 5001, 20_000, 20_001)),
            set_tag("k", "again"),
            *(
                post("experiments/delete-experiment-tag", {"experiment_id": E, "key": key})
                for key in ("k", "k", "a$", "é/x: y")
            ),
            get("experiments/get", experiment_id=E),
        ]
    )
