"""Kubeflow's Model Registry over the same models."""

from __future__ import annotations

from typing import Final

from operate.doctor.checkup import Checkup, expect

_PATH: Final = "model_registry/v1"


def read(checkup: Checkup) -> str:
    """The model that MLflow's API made is there, with its version."""
    api, name = checkup.api, checkup.fact("model")
    model = api.ask("GET", f"{_PATH}/registered_model", name=name)
    versions = api.ask("GET", f"{_PATH}/registered_models/{model['id']}/versions")["items"]
    names = [version["name"] for version in versions]
    expect(names == ["1"], f"the versions are {names}")
    return f"model {model['id']} with version {names[0]}"
