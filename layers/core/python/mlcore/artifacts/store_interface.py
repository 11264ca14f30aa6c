"""The interface of a file store, which the S3 bucket and the local folder implement."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol


class DirectoryEntry(NamedTuple):
    """A file or directory directly below a directory. ``size`` is in bytes, None for a
    directory."""

    name: str
    size: int | None


class StoredFile(NamedTuple):
    """A file that the artifact store lists below a directory: its key, its size in bytes, the time
    of its last change (seconds since 1970) and its ETag, with quotation marks."""

    key: str
    size: int
    modified: int
    etag: str


class OpenedFile(NamedTuple):
    """An existing file: its size in bytes, ETag, time of change (seconds since 1970) and content,
    which is None if it was not read."""

    size: int
    etag: str
    """The ETag, with its quotation marks."""
    modified: int
    """The time of its last change, in seconds since 1970."""
    data: bytes | None
    """The content; None if it is larger than the requested limit or was not requested."""


class UploadedPart(NamedTuple):
    """A part of a multipart upload of a file. ``etag`` is the one that the file store returned."""

    number: int
    etag: str


class Store(Protocol):
    """A store of files by key: an S3 bucket or a local folder. A directory exists only while it
    contains files.

    Methods raise TemporarilyUnavailable or RequestLimitExceeded when S3 cannot answer now, and
    InsufficientStorage when the disk of a local folder is full or read-only. A repeated call leaves
    the same files; only a repeated :meth:`create_upload` begins another upload.
    """

    def put(self, key: str, data: bytes) -> None:
        """Writes or replaces a file of the S3 bucket or local folder atomically."""

    def create(self, key: str, data: bytes) -> str | None:
        """Writes an artifact file atomically if it does not exist. Returns its ETag; None if the
        file exists, or on a conflict with another call."""

    def get(self, key: str) -> bytes | None:
        """Returns the whole content of the file with this key; None if the store has none."""

    def read(self, key: str, begin: int, length: int) -> bytes | None:
        """Returns up to ``length`` bytes of an artifact file from ``begin`` on, fewer at its end;
        None if the file does not exist."""

    def open(self, key: str, most: int) -> OpenedFile | None:
        """Returns size and ETag of a file of the artifact store, with its content if that has at
        most ``most`` bytes (0: never); None if the file does not exist."""

    def list(self, key: str) -> list[DirectoryEntry]:
        """Returns the entries directly below a directory ("" is the root), ordered by name; empty
        for a file or a missing directory."""

    def below(self, key: str, after: str = "") -> Iterator[StoredFile]:
        """Yields all files below a directory, also those in directories below it, ordered by key.

        Args:
            after: only files whose keys are greater.
        """

    def is_directory(self, key: str) -> bool:
        """Whether any file lies below the key."""

    def delete(self, key: str) -> None:
        """Deletes a file; does nothing if it does not exist."""

    def delete_tree(self, key: str, keep: Sequence[str] = ()) -> None:
        """Deletes the file with this key, or a directory with everything below it, except the files
        at or below one of the keys in ``keep``."""

    def delete_older(self, key: str, before: float, keep: Sequence[str] = ()) -> None:
        """Deletes every file below a directory that was written at or before a time.

        Args:
            before: seconds since 1970.
            keep: as in :meth:`delete_tree`.
        """

    def download_url(
        self, key: str, *, seconds: int, content_type: str, disposition: str, origin: str
    ) -> str:
        """Returns a signed URL from which a client downloads a file of the artifact store. The URL
        also answers range requests.

        Args:
            seconds: how long the URL is valid.
            content_type: the Content-Type of the response.
            disposition: the Content-Disposition of the response.
            origin: ``http://host:port`` under which the caller reached this server. Only a store
                that this server serves itself needs it.
        """

    def upload_url(self, key: str, *, seconds: int, content_type: str | None, origin: str) -> str:
        """Returns a signed URL to which a client can upload the artifact file ``key`` by PUT. S3
        requires exactly this ``content_type``, if it is given; a local folder ignores it."""

    def create_upload(self, key: str) -> str:
        """Begins a multipart upload of the file with this key. Returns the upload's id."""

    def part_url(self, key: str, upload_id: str, number: int, *, seconds: int, origin: str) -> str:
        """Returns a signed URL that accepts one part of an artifact's multipart upload by PUT; the
        answer has the part's ETag."""

    def complete_upload(self, key: str, upload_id: str, parts: Sequence[UploadedPart]) -> None:
        """Joins the parts of a multipart upload into the file. Repeating has no further effect.

        Args:
            parts: at least one, in the order of their numbers.

        Raises:
            InvalidParameterValue: a part is missing, unknown or too small.
            ResourceDoesNotExist: no such upload.
        """

    def abort_upload(self, key: str, upload_id: str) -> None:
        """Deletes a multipart upload and its parts; does nothing if it does not exist."""
