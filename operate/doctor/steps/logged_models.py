"""The checkup's steps for logged models: creation, status and search."""

from __future__ import annotations

from operate.doctor.checkup_state import Checkup, expect


def create(checkup: Checkup) -> str:
    """A step of ``doctor``: creates a logged model, sets its status to ready and reads it back.
    Returns the result as a text. Raises Wrong if it is not ready, LeftOut if an earlier step
    failed."""
    api, experiment = checkup.api, checkup.fact("experiment")
    made = api.post("logged-models", experiment_id=experiment, name="doctor")
    model_id = made["model"]["info"]["model_id"]
    path = f"2.0/mlflow/logged-models/{model_id}"
    checkup.will_remove("the logged model", lambda: api.ask("DELETE", path))
    api.ask("PATCH", path, {"model_id": model_id, "status": "LOGGED_MODEL_READY"})
    status = api.ask("GET", path)["model"]["info"]["status"]
    expect(status == "LOGGED_MODEL_READY", f"the status is {status}")
    checkup.facts["logged_model"] = model_id
    return f"model {model_id} is ready"


def search(checkup: Checkup) -> str:
    """Checks that a search finds the logged model at once. Returns the result as a text; raises
    Wrong, or LeftOut if an earlier step failed."""
    wanted = checkup.fact("logged_model")
    page = checkup.api.post(
        "logged-models/search", experiment_ids=[checkup.fact("experiment")]
    ).get("models", [])
    models = [model["info"]["model_id"] for model in page]
    expect(models == [wanted], f"the search finds {models}")
    return "found at once"
