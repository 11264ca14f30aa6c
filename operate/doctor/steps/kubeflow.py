"""Checks that a server's Kubeflow Model Registry API serves the same models as its MLflow API."""

from __future__ import annotations

from typing import Final

from operate.doctor.checkup_state import Checkup, expect

_PATH: Final = "model_registry/v1"


def read(checkup: Checkup) -> str:
    """Checks that Kubeflow's API returns the model that was created with MLflow's API, with its
    version. Returns the result as a text; raises Wrong, or LeftOut if an earlier step failed."""
    api, name = checkup.api, checkup.fact("model")
    model = api.ask("GET", f"{_PATH}/registered_model", name=name)
    versions = api.ask("GET", f"{_PATH}/registered_models/{model['id']}/versions")["items"]
    names = [version["name"] for version in versions]
    expect(names == ["1"], f"the versions are {names}")
    return f"model {model['id']} with version {names[0]}"
