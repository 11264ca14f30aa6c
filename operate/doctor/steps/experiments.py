"""Creates the experiment in which the command ``doctor`` tests a server, and removes what earlier,
killed calls of ``doctor`` left behind."""

from __future__ import annotations

import time
from typing import Any, Final
from urllib.parse import quote

from local import program_name
from operate.doctor.checkup_state import PREFIX, Checkup, expect
from operate.doctor.outcome import Wrong

LEFTOVER_SECONDS: Final = 3600
"""The age from which an entity with the prefix cannot belong to a checkup that is still running."""
ACTIVE: Final = "ACTIVE_ONLY"
_BY_NAME: Final = ("GET", "/api/2.0/mlflow/experiments/get-by-name")


def create(checkup: Checkup) -> str:
    """Creates an experiment, and checks that it is found by its name at once and that a second
    experiment of this name is refused. The name is also requested before the creation: a cache in
    front of the server that stores errors would then repeat the 404. Returns the result as a text;
    raises Wrong."""
    api, name = checkup.api, checkup.name
    before = api.call(*_BY_NAME, query={"experiment_name": name})
    expect(before.status == 404, f"a request for a missing experiment gets {before.status}")
    # Registered first: the answer to a creation can be lost.
    checkup.will_remove("the experiment", lambda: _remove(checkup))
    made = api.post("experiments/create", name=name)["experiment_id"]
    checkup.facts["experiment"] = made
    by_name = api.get("experiments/get-by-name", experiment_name=name)["experiment"]
    expect(by_name["experiment_id"] == made, f"the name belongs to {by_name['experiment_id']}")
    again = api.call("POST", "/api/2.0/mlflow/experiments/create", {"name": name})
    expect(again.status == 400, f"a second experiment with this name gets {again.status}")
    return f"experiment {made}, {name}"


def _remove(checkup: Checkup) -> None:
    experiments = checkup.api.call(*_BY_NAME, query={"experiment_name": checkup.name})
    if experiments.status == 404:
        return
    expect(experiments.status == 200, f"experiments/get-by-name: {experiments.status}")
    experiment = experiments.body["experiment"]["experiment_id"]
    delete(checkup, experiment)
    command = f"{program_name.commands()} gc --experiment {experiment}"
    checkup.facts["remains"] = (
        f"experiment {experiment} is in the trash: `{command}` removes it for good"
    )


def delete(checkup: Checkup, experiment: str) -> None:
    """Deletes a checkup's experiment through MLflow's API, and the files of its active runs (a page
    of runs). An experiment that is already deleted or missing is not an error."""
    api = checkup.api
    for run in api.post("runs/search", experiment_ids=[experiment]).get("runs", ()):
        _delete_files(checkup, run["info"]["artifact_uri"])
    answer = api.call("POST", "/api/2.0/mlflow/experiments/delete", {"experiment_id": experiment})
    gone = answer.status == 404 or (answer.status == 400 and "INVALID_STATE" in answer.text)
    expect(answer.status == 200 or gone, f"experiments/delete: {answer.status} {answer.text[:200]}")


def _delete_files(checkup: Checkup, uri: str) -> None:
    scheme, _, path = uri.partition(":/")
    if scheme != "mlflow-artifacts":
        return
    path = f"/api/2.0/mlflow-artifacts/artifacts/{quote(path.lstrip('/'))}"
    answer = checkup.api.call("DELETE", path)
    expect(answer.status in (200, 204, 404), f"DELETE of files: {answer.status}")


def remove_leftovers(checkup: Checkup) -> str:
    """Removes experiments, models and webhooks that killed checkups created more than an hour ago
    and left behind; up to a page of each. Returns a text with their number, or ``none``."""
    api = checkup.api
    before = int((time.time() - LEFTOVER_SECONDS) * 1000)

    def old(things: list[dict[str, Any]], *times: str) -> list[dict[str, Any]]:
        return [
            thing
            for thing in things
            if thing["name"].startswith(PREFIX)
            and int(next((thing[time] for time in times if time in thing), before)) < before
        ]

    pattern = f"name LIKE '{PREFIX}%'"
    page = api.post("experiments/search", filter=pattern, max_results=100, view_type=ACTIVE)
    experiments = old(page.get("experiments", []), "creation_time")
    for leftover in experiments:
        delete(checkup, leftover["experiment_id"])
    page = api.get("registered-models/search", filter=pattern, max_results="100")
    models = old(page.get("registered_models", []), "creation_timestamp")
    for leftover in models:
        api.ask("DELETE", "2.0/mlflow/registered-models/delete", {"name": leftover["name"]})
    listed = api.call("GET", "/api/2.0/mlflow/webhooks")
    webhooks = old(listed.body.get("webhooks", []), "creation_timestamp") if _ok(listed) else []
    for leftover in webhooks:
        api.ask("DELETE", f"2.0/mlflow/webhooks/{leftover['webhook_id']}")
    count = len(experiments) + len(models) + len(webhooks)
    return f"{count} things of earlier checkups removed" if count else "none"


def _ok(answer: Any) -> bool:
    """Returns whether a request about webhooks succeeded; False for the 403 of a login that is not
    an administrator's, which cannot have created webhooks. Raises Wrong for other answers."""
    if answer.status in (200, 403):
        return bool(answer.status == 200)
    raise Wrong(f"webhooks: {answer.status} {answer.text[:200]}")
