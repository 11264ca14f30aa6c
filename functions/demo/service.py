"""What the demo consists of, what of it is there, and its making and removal.

Each part leaves its version in a tag of the experiment when it is whole; a part without its tag is
made (again). What a part makes has names or ids that follow from the experiment, so making it twice
leaves one of each.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from demo import conversations, experiments, judging, training, wording
from demo.caller import Caller
from mlcore.http import Request, Response, Sent

EXPERIMENT: Final = "MLflow Demo"
"""As on MLflow's server: the UI looks for it."""
_VERSION_TAG: Final = "mlflow.demo.version."


class Part(NamedTuple):
    """A feature of the demo."""

    version: int
    make: Callable[[Caller, str], None]
    """By the id of the experiment."""
    remove: Callable[[Caller, str], None]


PARTS: Final[dict[str, Part]] = {
    "traces": Part(1, conversations.make, conversations.remove),
    "prompts": Part(1, wording.make, wording.remove),
    "evaluation": Part(1, judging.make_dataset, judging.remove_dataset),
    "judges": Part(1, judging.make_judges, judging.remove_judges),
    "training": Part(1, training.make, training.remove),
}
"""By the names that MLflow's server has for them; ``training`` is ours."""


def generate(wanted: list[str], request: Request) -> Response:
    """Makes the parts that are asked for. What is there stays."""
    caller = Caller(request)
    experiment_id, tags = experiments.ensure(caller, EXPERIMENT, experiments.GENAI)
    missing = [name for name in wanted if tags.get(_VERSION_TAG + name) != _version(name)]
    for name in missing:
        PARTS[name].make(caller, experiment_id)
        caller.post(
            "/2.0/mlflow/experiments/set-experiment-tag",
            experiment_id=experiment_id,
            key=_VERSION_TAG + name,
            value=_version(name),
        )
    return _told(
        status="created" if missing else "exists",
        experiment_id=experiment_id,
        features_generated=missing,
        navigation_url=f"/experiments/{experiment_id}",
    )


def delete(_message: None, request: Request) -> Response:
    """May be repeated. The experiment is deleted under another name, so that the demo can be made
    anew."""
    caller = Caller(request)
    found = experiments.find(caller, EXPERIMENT)
    removed = []
    if found is not None:
        experiment_id, tags = found
        removed = [name for name in PARTS if _VERSION_TAG + name in tags]
        for part in PARTS.values():
            part.remove(caller, experiment_id)
        experiments.discard(caller, EXPERIMENT)
    return _told(status="deleted", features_deleted=removed)


def features(sent: Sent) -> list[str]:
    """The parts that ``{"features": [...]}`` names; all of them without a body that says so, as
    MLflow's server reads it."""
    try:
        told = json.loads(sent.body() or b"{}")
    except ValueError:
        told = {}
    asked = told.get("features") if isinstance(told, dict) else None
    return [name for name in PARTS if not isinstance(asked, list) or name in asked]


def _version(name: str) -> str:
    return str(PARTS[name].version)


def _told(**fields: Any) -> Response:
    return Response(200, json.dumps(fields))
