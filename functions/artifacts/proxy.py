"""The artifact proxy: downloads, uploads, lists and deletes files by their path below the artifact
store's root."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from artifacts import file_responses
from artifacts import messages as m
from mlcore import errors
from mlcore.artifacts import exact_path, join, safe_path, store
from mlcore.artifacts.paths import is_hidden, key_in_workspace, names_file
from mlcore.artifacts.skill_uploads import check_not_skill, identity_below, segments_below
from mlcore.http import Request, Response
from mlcore.repos import skills
from mlcore.repos.runs.core.artifact_listing import listing
from mlcore.spans import trace_file_redaction

UPLOAD_SECONDS = 43_200
"""Seconds for which upload URLs are valid; in AWS they also end with the credentials that signed
them."""


def key_of(path: str, request: Request) -> str:
    """Returns the key in the artifact store for a path of the artifact proxy, decoded as MLflow
    decodes it. For reads; :func:`exact_key_of` is for writes. Raises InvalidParameterValue."""
    return key_in_workspace(safe_path(path), request.workspace)


def exact_key_of(path: str, request: Request) -> str:
    """Returns the key in the artifact store for a path of the artifact proxy, for writes and
    deletions. It is stricter than :func:`key_of`: a path that could mean two files is refused.

    Raises:
        InvalidParameterValue: the path could mean two files, such as one with an unencoded "?", or
            it is invalid.
        PermissionDenied: the path is among the files of a skill.
    """
    if request.has_query():
        # An unencoded "what?.txt" arrives as the path "what" with a query string.
        raise errors.InvalidParameterValue(
            "Invalid path: a '?' in the name of a file must be percent-encoded."
        )
    key = key_in_workspace(exact_path(path), request.workspace)
    check_not_skill(key)
    return key


def key_of_file(path: str, request: Request) -> str:
    """Returns the key in the artifact store for the path of a file that is read. Raises
    ResourceDoesNotExist if the file is among those of skills, but no version of a skill names it;
    InvalidParameterValue if the path is invalid."""
    key = key_of(path, request)
    uploads = _uploads_at(key, request)
    if uploads is not None and not _is_in(key, uploads):
        raise errors.ResourceDoesNotExist(f"No such artifact: '{key}'")
    return key


def _uploads_at(key: str, request: Request) -> set[str] | None:
    """Returns the keys of the folders with the files of a skill's versions, if ``key`` is among the
    files of that skill. Others are those of a killed registration, perhaps by another user, or of a
    deleted skill of the same name, which are removed shortly after the deletion. None for keys
    elsewhere."""
    segments = segments_below(key)
    identity = None if segments is None else identity_below(segments)
    if identity is None:
        return None
    paths = skills.upload_paths(request.workspace, identity)
    return {key_in_workspace(path, request.workspace) for path in paths}


def _is_in(key: str, folders: Iterable[str]) -> bool:
    # Some file systems take any case for the same.
    return any(f"{key}/".casefold().startswith(f"{folder}/".casefold()) for folder in folders)


def download(message: m.ProxyDownload, request: Request) -> Response:
    return file_responses.file_response(key_of_file(message.artifact_path, request), request)


def upload(message: m.ProxyUpload, request: Request) -> Response:
    """Writes the body of the request as a file of the artifact store. If API Gateway may have
    changed or dropped the body, redirects the client to upload it to the store directly. Raises
    BadRequest instead if the request has an AWS signature."""
    path = message.artifact_path
    key = exact_key_of(path, request)
    if not names_file(path):
        raise errors.InvalidParameterValue(
            "Artifact path must include a filename (cannot end with '/')."
        )
    if message.data is None:
        trace_file_redaction.check_direct(key, request.workspace)
        if request.is_signed():
            raise errors.BadRequest(
                "The body did not arrive as it was sent: it is too large, or its Content-Type says "
                f"text. {file_responses.SIGNED_UPLOADS}"
            )
        location = store().upload_url(
            key,
            seconds=UPLOAD_SECONDS,
            content_type=None,
            origin=file_responses.origin(request),
        )
        return Response(307, "", headers={"location": location, "cache-control": "no-store"})
    store().put(key, trace_file_redaction.redacted(key, message.data, request.workspace))
    return Response(200, "", "text/plain; charset=utf-8")


def list_artifacts(message: m.ListProxiedArtifacts, request: Request) -> dict[str, Any]:
    key = key_of(message.path, request)
    uploads = _uploads_at(key, request)
    entries = [
        entry
        for entry in store().list(key)
        if not is_hidden(key, entry.name)
        and (uploads is None or _is_in(join(key, entry.name), uploads))
    ]
    return listing(entries, "")


def delete_artifact(message: m.DeleteArtifact, request: Request) -> dict[str, Any]:
    key = exact_key_of(message.artifact_path, request)
    if key in ("", f"workspaces/{request.workspace}"):
        raise errors.InvalidParameterValue("The root of all artifacts cannot be deleted.")
    store().delete_tree(key)
    return {}
