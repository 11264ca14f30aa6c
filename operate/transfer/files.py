"""Copies files from the source server of an import, which serves them by its artifact proxy, to
this product's artifact store, under the same paths. If the table's setting ``redaction`` applies to
a trace, only the file of its spans is copied, in redacted form."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import urllib3

from mlcore import artifacts, errors
from mlcore.artifacts import UploadedPart
from mlcore.artifacts.local_folder_store import Folder
from mlcore.spans import trace_file_redaction
from operate.transfer.mlflow_client import Server, SourceFailed
from operate.transfer.transfer_item import Content, TransferItem

ROUTE: Final = "api/2.0/mlflow-artifacts/artifacts"
PART_BYTES: Final = 32 * 1024 * 1024
PART_SECONDS: Final = 3600


def item(server: Server, path: str) -> TransferItem:
    """Returns the transfer item that copies all files below a path from another MLflow server to
    the product's artifact store. Both count as equal if they have the same file names and sizes;
    the size of redacted spans is that after redaction. A file that one side refuses, for example
    because of its name, does not keep the others from being copied."""

    def have() -> Content:
        return dict(_kept(server.workspace, path, ""))

    def write(want: Content, existing: Content | None) -> None:
        refused = []
        for name, size in want.items():
            if (existing or {}).get(name) != size:
                try:
                    _copy(server, path, name)
                except errors.InvalidParameterValue as error:
                    refused.append(f"{name}: {error.message}")
                except SourceFailed as failed:
                    if not 400 <= failed.status < 500:
                        raise
                    refused.append(f"{name}: {failed}")
        if refused:
            raise errors.InvalidParameterValue("; ".join(refused))

    return TransferItem("files", path, lambda: dict(_wanted(server, path)), have, write)


def _wanted(server: Server, root: str) -> Iterator[tuple[str, int]]:
    """Yields (path, size) of each file that the store must have after the copy."""
    for below, size in offered(server, root, ""):
        try:
            key = _key(server.workspace, root, below)
        except errors.InvalidParameterValue:
            yield below, size  # the comparison then says that the target lacks it
            continue
        rules = trace_file_redaction.rules_of(key, server.workspace)
        if rules is None:
            yield below, size
        elif trace_file_redaction.can_be_redacted(key):
            yield below, len(trace_file_redaction.redacted_spans(rules, _read(server, root, below)))


def offered(server: Server, root: str, below: str) -> Iterator[tuple[str, int]]:
    """Yields (path, size) of each file that the source server of an import has in or below the
    artifact folder ``root``. Paths are relative to ``root``. ``below`` is the subfolder that this
    call lists, at first empty."""
    folder = f"{root}/{below}" if below else root
    try:
        entries = server.get(ROUTE, path=folder).get("files", [])
    except SourceFailed as failed:
        if failed.absent:
            return  # some artifact stores answer this for an empty directory
        raise
    for entry in entries:
        name = entry["path"].rstrip("/").rpartition("/")[2]
        path = f"{below}/{name}" if below else name
        if entry.get("is_dir"):
            yield from offered(server, root, path)
        else:
            yield path, int(entry.get("file_size", 0))


def _kept(workspace: str, root: str, below: str) -> Iterator[tuple[str, int]]:
    key = _key(workspace, root, below)
    for entry in artifacts.store().list(key):
        path = f"{below}/{entry.name}" if below else entry.name
        if entry.size is None:
            yield from _kept(workspace, root, path)
        else:
            yield path, entry.size


def _key(workspace: str, root: str, below: str) -> str:
    return artifacts.locate(f"mlflow-artifacts:/{root}", workspace, below)


def _copy(server: Server, root: str, below: str) -> None:
    store, key = artifacts.store(), _key(server.workspace, root, below)
    rules = trace_file_redaction.rules_of(key, server.workspace)
    if rules is not None:
        store.put(key, trace_file_redaction.redacted_spans(rules, _read(server, root, below)))
        return
    data = server.stream(f"{ROUTE}/{root}/{below}")
    if isinstance(store, Folder):
        incoming = store.open_for_writing(key)
        try:
            for chunk in data:
                incoming.write(chunk)
            incoming.commit()
        except BaseException:
            incoming.discard()
            raise
        return
    pieces = _pieces(data)
    first = next(pieces, b"")
    second = next(pieces, None)
    if second is None:
        store.put(key, first)
        return
    _copy_in_parts(store, key, _chained(first, second, pieces))


def _read(server: Server, root: str, below: str) -> bytes:
    return b"".join(server.stream(f"{ROUTE}/{root}/{below}"))


def _copy_in_parts(store: Any, key: str, pieces: Iterator[bytes]) -> None:
    upload = store.create_upload(key)
    parts = []
    try:
        for number, piece in enumerate(pieces, start=1):
            url = store.part_url(key, upload, number, seconds=PART_SECONDS, origin="")
            answer = urllib3.request("PUT", url, body=piece)
            if answer.status != 200:
                raise errors.TemporarilyUnavailable(f"The bucket answered {answer.status}.")
            parts.append(UploadedPart(number, answer.headers["etag"]))
        store.complete_upload(key, upload, parts)
    except BaseException:
        store.abort_upload(key, upload)
        raise


def _pieces(data: Iterator[bytes]) -> Iterator[bytes]:
    """Yields the same bytes in pieces of :data:`PART_BYTES`, of which the last may be shorter."""
    waiting = bytearray()
    for chunk in data:
        waiting += chunk
        while len(waiting) >= PART_BYTES:
            yield bytes(waiting[:PART_BYTES])
            del waiting[:PART_BYTES]
    if waiting:
        yield bytes(waiting)


def _chained(first: bytes, second: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    yield second
    yield from rest
