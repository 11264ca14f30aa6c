"""What a store of files does; does none of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol


class Entry(NamedTuple):
    """One name directly below a directory; ``size`` in bytes, None for a directory."""

    name: str
    size: int | None


class Opened(NamedTuple):
    """A file as it was found."""

    size: int
    etag: str
    """With its quotation marks."""
    modified: int
    """Seconds since 1970."""
    data: bytes | None
    """The content, None when it is larger than was asked for, or none was."""


class Part(NamedTuple):
    """An uploaded part of a file; ``etag`` as the store answered it."""

    number: int
    etag: str


class Store(Protocol):
    """Files by key. Directories exist only as long as there are files in them.

    Every method raises TemporarilyUnavailable or RequestLimitExceeded when the store cannot answer
    now; repeating a call is always safe.
    """

    def put(self, key: str, data: bytes) -> None:
        """Writes or replaces a file; readers see all of it or nothing."""

    def get(self, key: str) -> bytes | None:
        """The content of a file; None when there is none."""

    def read(self, key: str, begin: int, length: int) -> bytes | None:
        """So many bytes of a file from there on, fewer where it ends before; None when there is no
        such file."""

    def open(self, key: str, most: int) -> Opened | None:
        """A file, with its content if that has at most so many bytes (0: without); None when there
        is none."""

    def list(self, key: str) -> list[Entry]:
        """What is directly below a directory ("" is the root), by name; [] for a file or
        nothing."""

    def is_directory(self, key: str) -> bool:
        """Whether there is anything below the key."""

    def delete(self, key: str) -> None:
        """Removes a file; nothing happens when there is none."""

    def delete_tree(self, key: str, keep: Sequence[str] = ()) -> None:
        """Removes a file or a directory with everything below it, but for what is at or below one
        of the keys ``keep``."""

    def delete_older(self, key: str, before: float, keep: Sequence[str] = ()) -> None:
        """Removes everything below a directory that was written at or before a time.

        Args:
            before: seconds since 1970.
            keep: as in :meth:`delete_tree`.
        """

    def download_url(
        self, key: str, *, seconds: int, content_type: str, disposition: str, origin: str
    ) -> str:
        """A URL that answers the file with these headers, also in ranges.

        Args:
            origin: ``http://host:port`` by which the caller reached us, for stores that we serve
                ourselves.
        """

    def upload_url(self, key: str, *, seconds: int, content_type: str | None, origin: str) -> str:
        """A URL that takes the file by PUT; with this Content-Type, if one is given."""

    def create_upload(self, key: str) -> str:
        """Begins an upload in parts and answers its id."""

    def part_url(self, key: str, upload_id: str, number: int, *, seconds: int, origin: str) -> str:
        """A URL that takes one part by PUT and answers its ETag."""

    def complete_upload(self, key: str, upload_id: str, parts: Sequence[Part]) -> None:
        """Makes the file of its parts, once, however often it is called.

        Args:
            parts: one or more, in the order of their numbers.

        Raises:
            InvalidParameterValue: a part is missing, unknown or too small.
            ResourceDoesNotExist: no such upload.
        """

    def abort_upload(self, key: str, upload_id: str) -> None:
        """Forgets an upload and its parts; nothing happens when there is none."""
