"""Creates and deletes the parts of the demo.

When a part is complete, its version is stored in a tag of the experiment; a part without the tag,
or with another version, is created (again). Creating a part again keeps what exists: it is found by
a name, an id or a tag that each creation repeats.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from demo import (
    conversations,
    evaluation,
    experiments,
    judge,
    mcp_entry,
    prompts,
    review,
    training,
)
from mlcore.http import Request, Response, Sent
from mlcore.http.api_client import ApiClient
from mlcore.wire.json_text import parse_json_bytes

EXPERIMENT: Final = "MLflow Demo"
"""The name of the demo's experiment: the same as on MLflow's server, because the UI searches for
it."""
_VERSION_TAG: Final = "mlflow.demo.version."


class DemoPart(NamedTuple):
    """One part of the demo, such as its traces or prompts, with the functions that create and
    delete it."""

    version: int
    make: Callable[[ApiClient, str], None]
    """Creates the part. Takes the client and the id of the demo's experiment."""
    remove: Callable[[ApiClient, str], None]
    needs: str = ""
    """The part that must exist before this one."""


PARTS: Final[dict[str, DemoPart]] = {
    "traces": DemoPart(1, conversations.make, conversations.remove),
    "prompts": DemoPart(1, prompts.make, prompts.remove),
    "evaluation": DemoPart(2, evaluation.make, evaluation.remove, needs="traces"),
    "judges": DemoPart(1, judge.make, judge.remove),
    "issues": DemoPart(1, review.make_issue, review.keep, needs="traces"),
    "review_queues": DemoPart(1, review.make_queues, review.keep, needs="traces"),
    "saved_views": DemoPart(1, review.save_view, review.keep),
    "mcp_server": DemoPart(1, mcp_entry.make, mcp_entry.remove),
    "training": DemoPart(1, training.make, training.remove),
}
"""Parts by the names that MLflow's server uses, in the order in which they are made. ``mcp_server``
and ``training`` exist only here."""


def generate(wanted: list[str], request: Request) -> Response:
    """Creates the requested parts of the demo, and the parts that they need, unless they exist in
    their current version. The answer has the names of the created parts (``features_generated``)
    and the experiment's id."""
    client = ApiClient(request)
    experiment_id, tags = experiments.find_or_create(client, EXPERIMENT, experiments.GENAI)
    needed = {*wanted, *(PARTS[name].needs for name in wanted)}
    missing = [
        name for name in PARTS if name in needed and tags.get(_VERSION_TAG + name) != _version(name)
    ]
    for name in missing:
        PARTS[name].make(client, experiment_id)
        client.post(
            "/2.0/mlflow/experiments/set-experiment-tag",
            experiment_id=experiment_id,
            key=_VERSION_TAG + name,
            value=_version(name),
        )
    return _json_response(
        status="created" if missing else "exists",
        experiment_id=experiment_id,
        features_generated=missing,
        navigation_url=f"/experiments/{experiment_id}",
    )


def delete(_message: None, request: Request) -> Response:
    """Deletes all parts of the demo and its experiment, which is renamed before, so that the demo
    can be created again. A missing demo is not an error. Completes an interrupted call."""
    client = ApiClient(request)
    experiment = experiments.find(client, EXPERIMENT)
    removed = []
    if experiment is not None:
        experiment_id, tags = experiment
        removed = [name for name in PARTS if _VERSION_TAG + name in tags]
        for part in PARTS.values():
            part.remove(client, experiment_id)
        experiments.rename_and_delete(client, EXPERIMENT)
    for name in (EXPERIMENT, training.EXPERIMENT):
        experiments.delete_renamed(client, name)
    return _json_response(status="deleted", features_deleted=removed)


def parse_features(sent: Sent) -> list[str]:
    """Returns the names of the demo's parts that a body ``{"features": [...]}`` names; as on
    MLflow's server, all parts for any other body."""
    try:
        body = parse_json_bytes(sent.body() or b"{}")
    except ValueError:
        body = {}
    features = body.get("features") if isinstance(body, dict) else None
    return [name for name in PARTS if not isinstance(features, list) or name in features]


def _version(name: str) -> str:
    return str(PARTS[name].version)


def _json_response(**fields: Any) -> Response:
    return Response(200, json.dumps(fields))
