"""The step of the command ``doctor`` that checks the model registry: it registers a model with a
version and an alias."""

from __future__ import annotations

from operate.doctor.checkup_state import Checkup, expect


def register(checkup: Checkup) -> str:
    """Creates a registered model with a version and an alias, and checks that the alias leads to
    the version at once. Returns the result as a text; raises Wrong."""
    api, name = checkup.api, checkup.name
    checkup.will_remove("the registered model", lambda: _remove(checkup))
    api.post("registered-models/create", name=name)
    version = api.post("model-versions/create", name=name, source="s3://doctor/model")
    number = version["model_version"]["version"]
    api.post("registered-models/alias", name=name, alias="best", version=number)
    aliased = api.get("registered-models/alias", name=name, alias="best")["model_version"]
    expect(aliased["version"] == number, f"the alias leads to version {aliased['version']}")
    checkup.facts["model"] = name
    return f"version {number} of {name} is found by its alias"


def _remove(checkup: Checkup) -> None:
    answer = checkup.api.call(
        "DELETE", "/api/2.0/mlflow/registered-models/delete", {"name": checkup.name}
    )
    expect(answer.status in (200, 404), f"registered-models/delete: {answer.status}")
