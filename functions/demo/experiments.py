"""Finds, creates and deletes the demo's experiments by name."""

from __future__ import annotations

import contextlib
from typing import Final

from mlcore import reserved_tags
from mlcore.errors import PermissionDenied
from mlcore.http.api_client import ApiClient
from mlcore.ids import new_ulid

_KIND: Final = "mlflow.experimentKind"
GENAI: Final = "genai_development"
TRAINING: Final = "custom_model_development"
_RENAMED: Final = " (deleted "
"""Follows the former name of an experiment that was renamed to be deleted."""


def find(client: ApiClient, name: str) -> tuple[str, dict[str, str]] | None:
    """Returns the id and the tags of the active experiment with this name; None if it does not
    exist."""
    answer = client.find("/2.0/mlflow/experiments/get-by-name", experiment_name=name)
    if answer is None or answer["experiment"]["lifecycle_stage"] != "active":
        return None
    tags = {tag["key"]: tag["value"] for tag in answer["experiment"].get("tags", ())}
    return answer["experiment"]["experiment_id"], tags


def find_or_create(client: ApiClient, name: str, kind: str) -> tuple[str, dict[str, str]]:
    """Like :func:`find`, but creates a missing experiment. A deleted experiment with this name is
    renamed first, because it keeps the name taken."""
    experiment = find(client, name)
    while experiment is None:
        tags = [{"key": _KIND, "value": kind}, {"key": reserved_tags.DEMO, "value": "true"}]
        if client.create("/2.0/mlflow/experiments/create", name=name, tags=tags) is None:
            _release_name(client, name)
        experiment = find(client, name)
    return experiment


def rename_and_delete(client: ApiClient, name: str) -> None:
    """Frees the name of an active experiment: renames the experiment to an unused name and deletes
    it. A missing experiment is not an error."""
    experiment = find(client, name)
    if experiment is not None:
        _rename(client, experiment[0], name)
        client.remove("POST", "/2.0/mlflow/experiments/delete", experiment_id=experiment[0])


def delete_renamed(client: ApiClient, name: str) -> None:
    """Deletes the experiments that an interrupted :func:`rename_and_delete` has only renamed, as
    far as the caller may."""
    named = f"name LIKE '{name}{_RENAMED}%' AND tags.`{reserved_tags.DEMO}` = 'true'"
    answer = client.post("/2.0/mlflow/experiments/search", filter=named, max_results=100)
    for experiment in answer.get("experiments", ()):
        with contextlib.suppress(PermissionDenied):
            client.remove(
                "POST",
                "/2.0/mlflow/experiments/delete",
                experiment_id=experiment["experiment_id"],
            )


def _release_name(client: ApiClient, name: str) -> None:
    """Frees the name of a deleted experiment: restores it, because only an active one can be
    renamed, renames it and deletes it again."""
    answer = client.find("/2.0/mlflow/experiments/get-by-name", experiment_name=name)
    if answer is not None and answer["experiment"]["lifecycle_stage"] != "active":
        experiment_id = answer["experiment"]["experiment_id"]
        client.post("/2.0/mlflow/experiments/restore", experiment_id=experiment_id)
        rename_and_delete(client, name)


def _rename(client: ApiClient, experiment_id: str, name: str) -> None:
    new_name = f"{name}{_RENAMED}{new_ulid()})"
    client.post("/2.0/mlflow/experiments/update", experiment_id=experiment_id, new_name=new_name)
