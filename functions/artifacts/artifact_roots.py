"""Finds artifact roots: the URI below which the files of a run, a logged model or a model version
are stored."""

from __future__ import annotations

from mlcore.http import Request
from mlcore.limits import registry as limits
from mlcore.limits.model_sources import model_of, parse
from mlcore.repos.logged_models import logged_models
from mlcore.repos.registry import model_versions
from mlcore.repos.runs.core import artifact_listing

_RUNS = "runs:/"


def root_of_run(run_id: str, request: Request) -> str:
    """Returns the artifact root of a run. Raises ResourceDoesNotExist, also for a run of another
    workspace."""
    return artifact_listing.root_of_run(run_id, request.workspace)


def root_of_logged_model(model_id: str, request: Request) -> str:
    """Returns the artifact root of a logged model. Raises ResourceDoesNotExist, also for a deleted
    model and for one of another workspace."""
    return logged_models.artifact_location(model_id, request.workspace)


def root_of_model_version(name: str, version: str, request: Request) -> str:
    """Returns the artifact root of a model version; follows references to runs and logged models.
    Raises ResourceDoesNotExist, InvalidParameterValue for a malformed name or version."""
    limits.check_name(name)
    stored = model_versions.get(request.workspace, name, limits.version_number(version)).version
    location = stored.storage_location or stored.source
    if location.startswith(_RUNS):
        run_id, _, path = location.removeprefix(_RUNS).partition("/")
        return f"{root_of_run(run_id, request)}/{path}"
    model = model_of(parse(location))
    if model is not None and model.model_id is not None:
        return root_of_logged_model(model.model_id, request)
    return location
