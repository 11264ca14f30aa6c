"""The artifact proxy: files by their path from the root of the store."""

from __future__ import annotations

from typing import Any

from artifacts import downloads
from artifacts import messages as m
from mlcore import errors
from mlcore.artifacts import exact_path, safe_path, store
from mlcore.artifacts.paths import is_hidden, names_file, scoped
from mlcore.http import Request, Response
from mlcore.queries.artifacts import listing

UPLOAD_SECONDS = 43_200
"""How long the URLs of an upload work; in AWS not beyond the credentials that signed them."""


def key_of(path: str, request: Request) -> str:
    """The key of a path as the request gave it."""
    return scoped(safe_path(path), request.workspace)


def exact_key_of(path: str, request: Request) -> str:
    """As :func:`key_of`, for what is written or removed: by its very name."""
    if request.has_query:
        # "what?.txt" that was not encoded: only "what" is left of the name.
        raise errors.InvalidParameterValue(
            "Invalid path: a '?' in the name of a file must be percent-encoded."
        )
    return scoped(exact_path(path), request.workspace)


def download(message: m.ProxiedFile, request: Request) -> Response:
    return downloads.file(key_of(message.artifact_path, request), request)


def upload(message: m.SentFile, request: Request) -> Response:
    """Writes the body; one that did not come as it was sent is to be sent to the store itself."""
    path = message.artifact_path
    key = exact_key_of(path, request)
    if not names_file(path):
        raise errors.InvalidParameterValue(
            "Artifact path must include a filename (cannot end with '/')."
        )
    if message.data is None:
        if request.is_signed():
            raise errors.BadRequest(
                "The body did not arrive as it was sent: it is too large, or its Content-Type says "
                f"text. {downloads.SIGNED_UPLOADS}"
            )
        location = store().upload_url(
            key,
            seconds=UPLOAD_SECONDS,
            content_type=None,
            origin=downloads.origin(request),
        )
        return Response(307, "", headers={"location": location, "cache-control": "no-store"})
    store().put(key, message.data)
    return Response(200, "", "text/plain; charset=utf-8")


def list_artifacts(message: m.ListProxiedArtifacts, request: Request) -> dict[str, Any]:
    key = key_of(message.path, request)
    entries = [entry for entry in store().list(key) if not is_hidden(key, entry.name)]
    return listing(entries, "")


def delete_artifact(message: m.DeleteArtifact, request: Request) -> dict[str, Any]:
    key = exact_key_of(message.artifact_path, request)
    if key in ("", f"workspaces/{request.workspace}"):
        raise errors.InvalidParameterValue("The root of all artifacts cannot be deleted.")
    store().delete_tree(key)
    return {}
