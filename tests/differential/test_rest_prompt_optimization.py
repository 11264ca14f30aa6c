"""Jobs that optimize prompts, as far as no job is made: what is refused, and how.

MLflow's server finds most mistakes in the job, or after it has created the run; this one says them
at once (docs/adr/0096).
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.differential.calls import name
from tests.differential.pair import Pair
from tests.differential.rest import Call, Ref, post

pytestmark = pytest.mark.e2e

JOBS = "/api/3.0/mlflow/prompt-optimization/jobs"
ABSENT: Any = "absent"
CONFIG = {"optimizer_type": "OPTIMIZER_TYPE_GEPA", "optimizer_config_json": "{}"}


def created(**more: Any) -> Call:
    body: dict[str, Any] = {
        "experiment_id": Ref("experiment"),
        "source_prompt_uri": "prompts:/none/1",
    }
    body = {**body, "config": CONFIG, **more}
    return Call("POST", JOBS, {key: value for key, value in body.items() if value != ABSENT})


def configured(**more: Any) -> Call:
    config = {**CONFIG, **more}
    return created(config={key: value for key, value in config.items() if value != ABSENT})


def test_jobs_are_refused_alike(both: Pair) -> None:
    both.send_all(
        [
            post("experiments/create", {"name": name()})._replace(
                saves={"experiment": "experiment_id"}
            ),
            *(created(source_prompt_uri=value) for value in (ABSENT, None, "", 5, ["p"])),
            *(created(config=value) for value in (ABSENT, None, "")),
            *(created(experiment_id=value) for value in (ABSENT, None, "", " ", 5)),
            *(created(tags=value) for value in ("x", 5)),
            *(
                configured(optimizer_type=value)
                for value in (ABSENT, None, 0, "OPTIMIZER_TYPE_UNSPECIFIED")
            ),
            *(configured(optimizer_config_json=value) for value in ("{", "x", "[1", "{} x")),
            Call("GET", f"{JOBS}/none"),
            Call("POST", f"{JOBS}/none/cancel", {}),
            Call("DELETE", f"{JOBS}/none"),
            *(Call("POST", f"{JOBS}/search", {"experiment_id": value}) for value in (None, "", 5)),
            Call("POST", f"{JOBS}/search", {}),
            Call("POST", f"{JOBS}/search", {"experiment_id": "987654"}),
            Call("GET", f"{JOBS}/search", {"experiment_id": "987654"}),
            Call("GET", f"{JOBS}/search", {}),
        ]
    )
