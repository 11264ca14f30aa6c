"""The file store in an S3 bucket. Of ``mlcore`` and the functions, only this module calls S3."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO, Final, NoReturn

from botocore.exceptions import BotoCoreError, ClientError

from mlcore import errors
from mlcore.artifacts.paths import is_kept
from mlcore.artifacts.store_interface import DirectoryEntry, OpenedFile, StoredFile, UploadedPart
from mlcore.aws_clients import close_stale_connections

CONNECT_TIMEOUT_SECONDS: Final = 1
READ_TIMEOUT_SECONDS: Final = 6
ATTEMPTS: Final = 3
"""Attempts of at most 7 s each with 3 s of back-off in total, which is below a function's limit of
29 s."""
POOL_CONNECTIONS: Final = 16
_MISSING: Final = frozenset(("404", "NoSuchKey", "NotFound"))
_TAKEN: Final = frozenset(("PreconditionFailed", "ConditionalRequestConflict"))
_THROTTLED: Final = frozenset(
    ("SlowDown", "Throttling", "ThrottlingException", "RequestLimitExceeded")
)
_MISTAKES: Final = {
    "KeyTooLongError": "Invalid path: it is too long.",
    "EntityTooSmall": "A part is smaller than 5 MB, which only the last one may be.",
    "EntityTooLarge": "The file is larger than the store accepts.",
    "InvalidPart": "A part is missing, or was uploaded with another ETag.",
    "InvalidPartOrder": "The parts are not in the order of their numbers.",
    "InvalidArgument": "The file store rejected an argument of the request.",
    "InvalidRequest": "The file store rejected the request.",
    "MalformedXML": "The list of parts is empty or too long.",
}


class Bucket:
    """The file store in one S3 bucket. Botocore finds the region, endpoint and credentials."""

    def __init__(self, name: str) -> None:
        import botocore.session  # noqa: PLC0415 -- 60 ms of a cold start, for what few calls need
        from botocore.config import Config  # noqa: PLC0415

        self._name = name
        self._client: Any = botocore.session.get_session().create_client(
            "s3",
            config=Config(
                signature_version="s3v4",
                connect_timeout=CONNECT_TIMEOUT_SECONDS,
                read_timeout=READ_TIMEOUT_SECONDS,
                retries={"mode": "standard", "total_max_attempts": ATTEMPTS},
                max_pool_connections=POOL_CONNECTIONS,
                s3=_addressing(),
                # Otherwise a presigned URL would require a checksum of an S3-specific kind.
                request_checksum_calculation="when_required",
                response_checksum_validation="when_required",
                user_agent_extra="mlflow-serverless",
            ),
        )
        close_stale_connections(self._client)

    def put(self, key: str, data: bytes) -> None:
        with _errors_translated():
            self._client.put_object(Bucket=self._name, Key=key, Body=data)

    def create(self, key: str, data: bytes) -> str | None:
        with _errors_translated():
            try:
                answer = self._client.put_object(
                    Bucket=self._name, Key=key, Body=data, IfNoneMatch="*"
                )
            except ClientError as error:
                if _code(error) in _TAKEN:
                    return None
                raise
        etag: str = answer["ETag"]
        return etag

    def get(self, key: str) -> bytes | None:
        with _errors_translated():
            response = self._request_file(key)
            return None if response is None else response["Body"].read()

    def fetch(self, key: str, file: BinaryIO) -> None:
        """Copies a file of the S3 bucket into the open local ``file``, in chunks. Raises
        ResourceDoesNotExist if the bucket has no file with this key."""
        with _errors_translated():
            response = self._request_file(key)
            if response is None:
                raise errors.ResourceDoesNotExist(f"No such file: {key}")
            for chunk in response["Body"].iter_chunks(1 << 20):
                file.write(chunk)

    def read(self, key: str, begin: int, length: int) -> bytes | None:
        with _errors_translated():
            response = self._request_file(key, Range=f"bytes={begin}-{begin + length - 1}")
            return None if response is None else response["Body"].read()

    def open(self, key: str, most: int) -> OpenedFile | None:
        with _errors_translated():
            response = self._request_file(key, head=most == 0)
            if response is None:
                return None
            data = None
            if "Body" not in response:
                pass
            elif response["ContentLength"] <= most:
                data = response["Body"].read()
            else:
                response["Body"].close()
            return OpenedFile(
                response["ContentLength"],
                response["ETag"],
                int(response["LastModified"].timestamp()),
                data,
            )

    def list(self, key: str) -> list[DirectoryEntry]:
        prefix = f"{key}/" if key else ""
        entries: list[DirectoryEntry] = []
        with _errors_translated():
            for page in self._pages(prefix, "/"):
                entries += (
                    DirectoryEntry(item["Prefix"][len(prefix) : -1], None)
                    for item in page.get("CommonPrefixes", ())
                )
                entries += (
                    DirectoryEntry(item["Key"][len(prefix) :], item["Size"])
                    for item in page.get("Contents", ())
                    # Some tools create an empty object as a "directory".
                    if item["Key"] != prefix
                )
        return sorted(entries, key=lambda entry: entry.name)

    def below(self, key: str, after: str = "") -> Iterator[StoredFile]:
        prefix = f"{key}/" if key else ""
        with _errors_translated():
            for page in self._pages(prefix, "", after):
                for item in page.get("Contents", ()):
                    if item["Key"] != prefix:
                        modified = int(item["LastModified"].timestamp())
                        yield StoredFile(item["Key"], item["Size"], modified, item["ETag"])

    def is_directory(self, key: str) -> bool:
        with _errors_translated():
            page = self._client.list_objects_v2(Bucket=self._name, Prefix=f"{key}/", MaxKeys=1)
        return bool(page.get("Contents"))

    def delete(self, key: str) -> None:
        with _errors_translated():
            self._client.delete_object(Bucket=self._name, Key=key)

    def delete_tree(self, key: str, keep: Sequence[str] = ()) -> None:
        if key and not is_kept(key, keep):
            self.delete(key)
        self._delete_below(f"{key}/" if key else "", float("inf"), keep)

    def delete_older(self, key: str, before: float, keep: Sequence[str] = ()) -> None:
        self._delete_below(f"{key}/", before, keep)

    def _delete_below(self, prefix: str, before: float, keep: Sequence[str]) -> None:
        with _errors_translated():
            for page in self._pages(prefix, ""):
                deletions = [
                    {"Key": item["Key"]}
                    for item in page.get("Contents", ())
                    if item["LastModified"].timestamp() <= before and not is_kept(item["Key"], keep)
                ]
                if not deletions:
                    continue
                answer = self._client.delete_objects(
                    Bucket=self._name, Delete={"Objects": deletions, "Quiet": True}
                )
                if answer.get("Errors"):
                    raise errors.TemporarilyUnavailable(
                        "Some files could not be deleted. Try again."
                    )

    def download_url(
        self, key: str, *, seconds: int, content_type: str, disposition: str, origin: str
    ) -> str:
        return self._url(
            "get_object",
            seconds,
            Key=key,
            ResponseContentType=content_type,
            ResponseContentDisposition=disposition,
            ResponseContentEncoding="identity",  # else a browser or client unpacks a .gz file
        )

    def upload_url(self, key: str, *, seconds: int, content_type: str | None, origin: str) -> str:
        if content_type is None:
            return self._url("put_object", seconds, Key=key)
        return self._url("put_object", seconds, Key=key, ContentType=content_type)

    def create_upload(self, key: str) -> str:
        with _errors_translated():
            created = self._client.create_multipart_upload(Bucket=self._name, Key=key)
        upload_id: str = created["UploadId"]
        return upload_id

    def part_url(self, key: str, upload_id: str, number: int, *, seconds: int, origin: str) -> str:
        return self._url("upload_part", seconds, Key=key, UploadId=upload_id, PartNumber=number)

    def complete_upload(self, key: str, upload_id: str, parts: Sequence[UploadedPart]) -> None:
        part_list = [{"PartNumber": part.number, "ETag": part.etag} for part in parts]
        try:
            with _errors_translated():
                self._client.complete_multipart_upload(
                    Bucket=self._name,
                    Key=key,
                    UploadId=upload_id,
                    MultipartUpload={"Parts": part_list},
                )
        except errors.ResourceDoesNotExist:
            # S3 deletes an upload when it is completed, so a repeated call finds the file instead.
            if self._etag(key) != _etag_of(parts):
                raise

    def abort_upload(self, key: str, upload_id: str) -> None:
        with contextlib.suppress(errors.ResourceDoesNotExist), _errors_translated():
            self._client.abort_multipart_upload(Bucket=self._name, Key=key, UploadId=upload_id)

    def _request_file(self, key: str, *, head: bool = False, **parameters: str) -> Any:
        ask = self._client.head_object if head else self._client.get_object
        try:
            return ask(Bucket=self._name, Key=key, **parameters)
        except ClientError as error:
            if _code(error) in _MISSING:
                return None
            raise

    def _etag(self, key: str) -> str | None:
        file = self.open(key, 0)
        return file.etag.strip('"') if file else None

    def _pages(self, prefix: str, delimiter: str, after: str = "") -> Iterator[Any]:
        named = {"Delimiter": delimiter, "StartAfter": after}
        parameters = {name: value for name, value in named.items() if value}
        while True:
            page = self._client.list_objects_v2(Bucket=self._name, Prefix=prefix, **parameters)
            yield page
            if not page.get("IsTruncated"):
                return
            parameters["ContinuationToken"] = page["NextContinuationToken"]

    def _url(self, operation: str, seconds: int, **parameters: Any) -> str:
        url: str = self._client.generate_presigned_url(
            operation, Params={"Bucket": self._name, **parameters}, ExpiresIn=seconds
        )
        return url


def _addressing() -> Any:
    """Returns botocore's options for presigned URLs that name the bucket as
    ``https://BUCKET.s3.REGION.…``; None for a custom endpoint.

    By default botocore presigns for the global host. That host redirects to the bucket's region,
    where the signature is not valid, or does not know a new bucket yet. A custom endpoint keeps
    botocore's default, since emulators are addressed by path.
    """
    if os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL"):
        return None
    return {"addressing_style": "virtual", "us_east_1_regional_endpoint": "regional"}


def _etag_of(parts: Sequence[UploadedPart]) -> str:
    """Returns the ETag of a file uploaded in these parts to a bucket encrypted with S3-managed
    keys."""
    try:
        digests = b"".join(bytes.fromhex(part.etag.strip('"')) for part in parts)
    except ValueError:
        return ""
    return f"{hashlib.md5(digests, usedforsecurity=False).hexdigest()}-{len(parts)}"


def _code(error: ClientError) -> str:
    return error.response.get("Error", {}).get("Code", "")


@contextlib.contextmanager
def _errors_translated() -> Iterator[None]:
    """Translates S3's errors inside the ``with`` block into this server's errors. Errors of the
    deployment, such as missing rights, are raised unchanged."""
    try:
        yield
    except ClientError as error:
        _raise(error)
    except (BotoCoreError, OSError) as error:
        raise errors.TemporarilyUnavailable(
            "The file store is not available. Try again."
        ) from error


def _raise(error: ClientError) -> NoReturn:
    code = _code(error)
    if code == "NoSuchUpload":
        raise errors.ResourceDoesNotExist("No such upload, or it has ended.") from error
    if code in _THROTTLED:
        raise errors.RequestLimitExceeded("The file store is busy. Try again later.") from error
    if code in _MISTAKES:
        raise errors.InvalidParameterValue(_MISTAKES[code]) from error
    if error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0) >= 500:
        raise errors.TemporarilyUnavailable(
            "The file store is not available. Try again."
        ) from error
    raise error
