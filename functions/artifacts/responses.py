"""Files as responses."""

from __future__ import annotations

import os
from email.utils import formatdate
from typing import Final

from mlcore import errors
from mlcore.artifacts import Opened, store
from mlcore.artifacts.content import attachment, content_type
from mlcore.http import Request, Response

MOST_PASSED_BYTES: Final = 1 << 20
"""Of a file that comes in the answer itself; a larger one is fetched from the store, which costs
the client one request more and us nothing."""

DOWNLOAD_SECONDS: Final = 300


def download_seconds() -> int:
    """How long the URL of a download works."""
    return int(os.environ.get("MLFLOW_PRESIGNED_DOWNLOAD_URL_TTL_SECONDS", DOWNLOAD_SECONDS))


def origin(request: Request) -> str:
    """Scheme and host that the caller used."""
    host = request.headers.get("host")
    return f"{request.headers.get('x-forwarded-proto', 'http')}://{host}" if host else ""


def found(key: str, most: int) -> Opened:
    """A file of the store.

    Raises:
        InvalidParameterValue: there is a directory instead.
        ResourceDoesNotExist: there is nothing.
    """
    opened = store().open(key, most) if key else None
    if opened is not None:
        return opened
    if not key or store().is_directory(key):
        raise errors.InvalidParameterValue(
            f"Artifact path refers to a directory, not a file: '{key}'"
        )
    raise errors.ResourceDoesNotExist(f"No such artifact: '{key}'")


def file(key: str, request: Request) -> Response:
    """The file itself if it is small, else a redirect to where it is. Always as an attachment, or a
    browser would run what it contains in our name."""
    # A part of a file is for the store to cut out.
    opened = found(key, 0 if "range" in request.headers else MOST_PASSED_BYTES)
    if opened.data is None:
        location = download_url(key, download_seconds(), request)
        return Response(307, "", headers={"location": location, "cache-control": "no-store"})
    name = key.rpartition("/")[2]
    headers = {
        "content-disposition": attachment(name),
        "x-content-type-options": "nosniff",
        "accept-ranges": "bytes",
        "etag": opened.etag,
        "last-modified": formatdate(opened.modified, usegmt=True),
        "cache-control": "no-cache",
    }
    return Response(200, opened.data, content_type(name), headers)


def download_url(key: str, seconds: int, request: Request) -> str:
    name = key.rpartition("/")[2]
    return store().download_url(
        key,
        seconds=seconds,
        content_type=content_type(name),
        disposition=attachment(name),
        origin=origin(request),
    )
