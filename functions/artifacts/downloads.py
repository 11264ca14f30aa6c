"""Files as responses."""

from __future__ import annotations

import os
from email.utils import formatdate
from typing import Final

from mlcore import errors
from mlcore.artifacts import Opened, store
from mlcore.artifacts.content import attachment, content_type
from mlcore.http import Request, Response
from mlcore.http.compression import MAX_BODY_BYTES

MOST_PASSED_BYTES: Final = 1 << 20
"""Of a file that comes in the answer itself; a larger one is fetched from the store, which costs
the client one request more and us nothing."""

MOST_ANSWERED_BYTES: Final = MAX_BODY_BYTES // 4 * 3 - 4
"""Of a file that Lambda's JSON can hold, as Base64."""

SIGNED_UPLOADS: Final = (
    "Send files in parts instead (POST …/mlflow-artifacts/mpu/create): MLflow's client does so for "
    "all files where MLFLOW_MULTIPART_UPLOAD_MINIMUM_FILE_SIZE=0 is set."
)

DOWNLOAD_SECONDS: Final = 300


def download_seconds() -> int:
    """How long the URL of a download works."""
    return int(os.environ.get("MLFLOW_PRESIGNED_DOWNLOAD_URL_TTL_SECONDS", DOWNLOAD_SECONDS))


def origin(request: Request) -> str:
    """Scheme and host that the caller used."""
    host = request.headers.get("host")
    return f"{request.headers.get('x-forwarded-proto', 'http')}://{host}" if host else ""


def existing_file(key: str, most: int) -> Opened:
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
    browser would run what it contains in our name.

    Whoever signs requests for AWS is not redirected: clients take the headers of the signature
    along, the session's token among them, and S3 refuses headers that its URL was not signed for.

    Raises:
        BadRequest: the file is too large for an answer to a signed request.
    """
    # A part of a file is for the store to cut out.
    most = 0 if "range" in request.headers else MOST_PASSED_BYTES
    opened = existing_file(key, MOST_ANSWERED_BYTES if request.is_signed() else most)
    if opened.data is None and request.is_signed():
        raise errors.BadRequest(
            f"The file has {opened.size} bytes, more than the {MOST_ANSWERED_BYTES} that can be "
            "answered to a request with an AWS signature. Ask for a URL instead "
            "(GET …/mlflow-artifacts/presigned/PATH), as MLflow's client 3.17 does by itself."
        )
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
