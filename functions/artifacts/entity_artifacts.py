"""Serves files of runs, logged models and model versions: lists those of runs and logged models,
returns files of all three, and stores files that the UI uploads to a run."""

from __future__ import annotations

from typing import Any, Final

from artifacts import artifact_roots, file_responses
from artifacts import messages as m
from mlcore import errors
from mlcore.artifacts import exact_path, locate, safe_path, store
from mlcore.artifacts.skill_uploads import check_not_skill
from mlcore.http import Request, Response
from mlcore.repos.runs.core import artifact_listing as queries
from mlcore.spans import trace_file_redaction
from mlcore.wire import encode

MAX_UPLOAD_BYTES: Final = 10 * 1024 * 1024


def list_artifacts(message: m.ListArtifacts, request: Request) -> dict[str, Any]:
    return queries.of_run(message.run_id or message.run_uuid, message.path, request.workspace)


def list_logged_model_artifacts(
    message: m.ListLoggedModelArtifacts, request: Request
) -> dict[str, Any]:
    path = safe_path(message.artifact_directory_path)
    root = artifact_roots.root_of_logged_model(message.model_id, request)
    return queries.below(root, path, request.workspace)


def get_artifact(message: m.GetArtifact, request: Request) -> Response:
    path = _path(message)
    run_id = message.run_id or message.run_uuid or "None"  # as MLflow's server words it
    return _file(artifact_roots.root_of_run(run_id, request), path, request)


def get_model_version_artifact(message: m.GetModelVersionArtifact, request: Request) -> Response:
    path = _path(message)
    root = artifact_roots.root_of_model_version(message.name, message.version, request)
    return _file_or_url(root, path, message.presigned, request)


def get_logged_model_artifact(message: m.GetLoggedModelArtifact, request: Request) -> Response:
    if not message.artifact_file_path:
        raise errors.BadRequest('Request must include the "artifact_file_path" query parameter.')
    safe = safe_path(message.artifact_file_path)
    root = artifact_roots.root_of_logged_model(message.model_id, request)
    return _file_or_url(root, safe, message.presigned, request)


def _file(root: str, path: str, request: Request) -> Response:
    return file_responses.file_response(locate(root, request.workspace, path), request)


def _file_or_url(root: str, path: str, presigned: str, request: Request) -> Response:
    """Returns the file, or with ``presigned=true`` a JSON object with its size and a URL."""
    if presigned != "true":
        return _file(root, path, request)
    key = locate(root, request.workspace, path)
    return Response(200, encode(file_responses.presigned(key, request)))


def _path(message: m.GetArtifact | m.GetModelVersionArtifact) -> str:
    if not message.has("path"):
        raise errors.InvalidParameterValue("Request must specify path.")
    return safe_path(message.path)


def upload_artifact(message: m.RunFileUpload, request: Request) -> Response:
    run_id, path, data = message
    if not run_id:
        raise errors.InvalidParameterValue("Request must specify run_id or run_uuid.")
    if not path:
        raise errors.InvalidParameterValue("Request must specify path.")
    safe = exact_path(path)
    if not data:
        raise errors.InvalidParameterValue("Request must specify data.")
    if len(data) > MAX_UPLOAD_BYTES:
        raise errors.InvalidParameterValue("Artifact size is too large. Max size is 10MB.")
    if not safe or path.endswith("/"):
        raise errors.InvalidParameterValue(f"'{path}' names no file.")
    key = locate(artifact_roots.root_of_run(run_id, request), request.workspace, safe)
    check_not_skill(key)
    store().put(key, trace_file_redaction.redacted(key, data, request.workspace))
    return Response(200, "")
