"""The demo's experiments: found by their names, made, and put away."""

from __future__ import annotations

from typing import Final

from demo.caller import Caller
from mlcore.ids import new_ulid

_KIND: Final = "mlflow.experimentKind"
_DEMO: Final = "mlflow.demo"
GENAI: Final = "genai_development"
TRAINING: Final = "custom_model_development"


def find(caller: Caller, name: str) -> tuple[str, dict[str, str]] | None:
    """The id and the tags of the active experiment of a name."""
    found = caller.find("/2.0/mlflow/experiments/get-by-name", experiment_name=name)
    if found is None or found["experiment"]["lifecycle_stage"] != "active":
        return None
    tags = {tag["key"]: tag["value"] for tag in found["experiment"].get("tags", ())}
    return found["experiment"]["experiment_id"], tags


def ensure(caller: Caller, name: str, kind: str) -> tuple[str, dict[str, str]]:
    """As :func:`find`, made where there is none. One of this name that somebody has deleted is put
    away first."""
    found = find(caller, name)
    while found is None:
        tags = [{"key": _KIND, "value": kind}, {"key": _DEMO, "value": "true"}]
        if caller.make("/2.0/mlflow/experiments/create", name=name, tags=tags) is None:
            _put_away(caller, name)
        found = find(caller, name)
    return found


def discard(caller: Caller, name: str) -> None:
    """Deletes the experiment under a name that nobody asks for. May be repeated."""
    found = find(caller, name)
    if found is not None:
        _rename(caller, found[0], name)
        caller.remove("POST", "/2.0/mlflow/experiments/delete", experiment_id=found[0])


def _put_away(caller: Caller, name: str) -> None:
    """A deleted experiment keeps its name, and only an active one can be renamed."""
    found = caller.find("/2.0/mlflow/experiments/get-by-name", experiment_name=name)
    if found is not None and found["experiment"]["lifecycle_stage"] != "active":
        experiment_id = found["experiment"]["experiment_id"]
        caller.post("/2.0/mlflow/experiments/restore", experiment_id=experiment_id)
        discard(caller, name)


def _rename(caller: Caller, experiment_id: str, name: str) -> None:
    gone = f"{name} (deleted {new_ulid()})"
    caller.post("/2.0/mlflow/experiments/update", experiment_id=experiment_id, new_name=gone)
