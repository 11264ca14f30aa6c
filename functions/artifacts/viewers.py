"""Files of runs, logged models and model versions, as the pages of the UI ask for them."""

from __future__ import annotations

from typing import Any, Final

from artifacts import downloads, roots
from artifacts import messages as m
from mlcore import errors
from mlcore.artifacts import exact_path, locate, safe_path, store
from mlcore.http import Request, Response
from mlcore.queries import artifacts as queries

MOST_UPLOADED_BYTES: Final = 10 * 1024 * 1024


def list_artifacts(message: m.ListArtifacts, request: Request) -> dict[str, Any]:
    return queries.of_run(message.run_id or message.run_uuid, message.path, request.workspace)


def list_logged_model_artifacts(
    message: m.ListLoggedModelArtifacts, request: Request
) -> dict[str, Any]:
    path = safe_path(message.artifact_directory_path)
    root = roots.of_logged_model(message.model_id, request)
    return queries.below(root, path, request.workspace)


def get_artifact(message: m.GetArtifact, request: Request) -> Response:
    path = _path(message)
    run_id = message.run_id or message.run_uuid or "None"  # as MLflow's server words it
    return _file(roots.of_run(run_id, request), path, request)


def get_model_version_artifact(message: m.GetModelVersionArtifact, request: Request) -> Response:
    path = _path(message)
    return _file(roots.of_model_version(message.name, message.version, request), path, request)


def get_logged_model_artifact(message: m.GetLoggedModelArtifact, request: Request) -> Response:
    if not message.artifact_file_path:
        raise errors.BadRequest('Request must include the "artifact_file_path" query parameter.')
    safe = safe_path(message.artifact_file_path)
    return _file(roots.of_logged_model(message.model_id, request), safe, request)


def _file(root: str, path: str, request: Request) -> Response:
    return downloads.file(locate(root, request.workspace, path), request)


def _path(message: m.GetArtifact | m.GetModelVersionArtifact) -> str:
    if not message.has("path"):
        raise errors.InvalidParameterValue("Request must specify path.")
    return safe_path(message.path)


def upload_artifact(message: m.SentFileOfRun, request: Request) -> Response:
    run_id, _, path, data = message
    if not run_id:
        raise errors.InvalidParameterValue("Request must specify run_uuid.")
    if not path:
        raise errors.InvalidParameterValue("Request must specify path.")
    safe = exact_path(path)
    if not data:
        raise errors.InvalidParameterValue("Request must specify data.")
    if len(data) > MOST_UPLOADED_BYTES:
        raise errors.InvalidParameterValue("Artifact size is too large. Max size is 10MB.")
    if not safe or path.endswith("/"):
        raise errors.InvalidParameterValue(f"'{path}' names no file.")
    store().put(locate(roots.of_run(run_id, request), request.workspace, safe), data)
    return Response(200, "")
