"""Responses for downloads: a small file is returned, a request for a larger one is redirected to a
presigned URL."""

from __future__ import annotations

import os
from email.utils import formatdate
from typing import Any, Final

from artifacts.byte_ranges import (
    ByteRange,
    is_many,
    names_etag,
    partial_response,
    requested_ranges,
    unsatisfiable,
)
from mlcore import errors
from mlcore.artifacts import OpenedFile, store
from mlcore.artifacts.file_headers import attachment, content_type
from mlcore.http import Request, Response
from mlcore.http.compression import MAX_BODY_BYTES

MAX_INLINE_BYTES: Final = 1 << 20
"""Size of the largest file that a response contains, unless the request has an AWS signature. A
larger file is downloaded from the store, which costs the client one more request but no transfer
through the function."""

MAX_RESPONSE_BYTES: Final = MAX_BODY_BYTES // 4 * 3 - 4
"""Largest file that fits Lambda's response, which is JSON with the file in Base64."""

SIGNED_UPLOADS: Final = (
    "Send files in parts instead (POST …/mlflow-artifacts/mpu/create): MLflow's client does so for "
    "all files where MLFLOW_MULTIPART_UPLOAD_MINIMUM_FILE_SIZE=0 is set."
)

DOWNLOAD_SECONDS: Final = 300


def download_seconds() -> int:
    """Returns for how many seconds a presigned URL to download an artifact is valid."""
    return int(os.environ.get("MLFLOW_PRESIGNED_DOWNLOAD_URL_TTL_SECONDS", DOWNLOAD_SECONDS))


def origin(request: Request) -> str:
    """Returns the scheme and host that the caller used, such as ``https://host``; "" without a Host
    header."""
    host = request.headers.get("host")
    return f"{request.headers.get('x-forwarded-proto', 'http')}://{host}" if host else ""


def existing_file(key: str, max_bytes: int) -> OpenedFile:
    """Opens a file of the artifact store by its key. The result contains the file's data if it has
    at most ``max_bytes``, else only its properties.

    Raises:
        InvalidParameterValue: the key is a directory.
        ResourceDoesNotExist: the key does not exist.
    """
    opened = store().open(key, max_bytes) if key else None
    if opened is not None:
        return opened
    if not key or store().is_directory(key):
        raise errors.InvalidParameterValue(
            f"Artifact path refers to a directory, not a file: '{key}'"
        )
    raise errors.ResourceDoesNotExist(f"No such artifact: '{key}'")


def file_response(key: str, request: Request) -> Response:
    """Returns 304 if the request names the file's ETag; the file itself, or the ranges of it that
    the request asks for, if the file is small; else a redirect to a presigned URL. The file is
    always an attachment: a browser must not run its content with this site's rights.

    Of a larger file, the store cuts out a range; for several ranges it returns the whole file. HEAD
    is not redirected: the store refuses it at a URL that was signed for GET.

    Requests with an AWS signature are not redirected: clients repeat the signature's headers, and
    S3 refuses headers that its URL was not signed for. Raises BadRequest if the request is signed
    and the file is too large for a response, InvalidParameterValue for a malformed Range header,
    and the errors of :func:`existing_file`.
    """
    opened = existing_file(key, MAX_RESPONSE_BYTES if request.is_signed() else MAX_INLINE_BYTES)
    name = key.rpartition("/")[2]
    modified = formatdate(opened.modified, usegmt=True)
    validators = {"etag": opened.etag, "last-modified": modified, "cache-control": "no-cache"}
    if names_etag(request.headers.get("if-none-match", ""), opened.etag):
        return Response(304, "", content_type(name), validators)
    wanted = request.headers.get("range")
    is_same = request.headers.get("if-range", opened.etag) in (opened.etag, modified)
    ranges: list[ByteRange] = []
    if wanted is not None and is_same and not is_many(wanted):
        ranges = requested_ranges(wanted, opened.size)
        if not ranges:
            return unsatisfiable(opened.size)
    headers = {
        "content-disposition": attachment(name),
        "x-content-type-options": "nosniff",
        "accept-ranges": "bytes",
        **validators,
    }
    if opened.data is None and request.method == "HEAD":
        length = {"content-length": str(opened.size)}
        return Response(200, "", content_type(name), {**headers, **length})
    if opened.data is None and request.is_signed():
        raise errors.BadRequest(
            f"The file has {opened.size} bytes, more than the {MAX_RESPONSE_BYTES} that can be "
            "answered to a request with an AWS signature. Ask for a URL instead "
            "(GET …/mlflow-artifacts/presigned/PATH), as MLflow's client does by itself since 3.17."
        )
    if opened.data is None:
        location = download_url(key, download_seconds(), request)
        return Response(307, "", headers={"location": location, "cache-control": "no-store"})
    if len(ranges) == 1 or (ranges and opened.size <= MAX_INLINE_BYTES):
        return partial_response(opened.data, ranges, content_type(name), headers)
    return Response(200, opened.data, content_type(name), headers)


def presigned(key: str, request: Request) -> dict[str, Any]:
    """Returns MLflow's JSON response with a presigned URL (``url``, ``headers``, ``file_size``), by
    which the client downloads the artifact file ``key`` from the artifact store. Raises the errors
    of :func:`existing_file`."""
    size = existing_file(key, 0).size
    return {"url": download_url(key, download_seconds(), request), "headers": {}, "file_size": size}


def download_url(key: str, seconds: int, request: Request) -> str:
    name = key.rpartition("/")[2]
    return store().download_url(
        key,
        seconds=seconds,
        content_type=content_type(name),
        disposition=attachment(name),
        origin=origin(request),
    )
