"""The artifact store: one interface (:mod:`.store_interface`), implemented by an S3 bucket in AWS
(:mod:`.s3_store`) and by a folder on a laptop (:mod:`.local_folder_store`).

Keys are paths below the root of the store, with "/" between segments. :mod:`.storage_keys` turns a
client's location, such as ``mlflow-artifacts:/1/<run>/artifacts``, into a key.
"""

from __future__ import annotations

import functools
import os

from mlcore.artifacts.paths import exact_path, join, safe_path
from mlcore.artifacts.s3_store import Bucket
from mlcore.artifacts.storage_keys import history_folder, internal_key, locate
from mlcore.artifacts.store_interface import (
    DirectoryEntry,
    OpenedFile,
    Store,
    StoredFile,
    UploadedPart,
)

__all__ = [
    "DirectoryEntry",
    "OpenedFile",
    "Store",
    "StoredFile",
    "UploadedPart",
    "exact_path",
    "has_store",
    "history_folder",
    "internal_key",
    "join",
    "locate",
    "safe_path",
    "store",
]


def has_store() -> bool:
    """Whether environment variables configure the file store: an S3 bucket or a local folder."""
    return bool(os.environ.get("ARTIFACT_FOLDER") or os.environ.get("ARTIFACT_BUCKET"))


@functools.cache
def store() -> Store:
    """Returns the file store of this process.

    Environment:
        ARTIFACT_FOLDER: a folder of this machine; set by the local runner.
        ARTIFACT_BUCKET: else, an S3 bucket.

    Raises:
        KeyError: neither is set.
    """
    folder = os.environ.get("ARTIFACT_FOLDER")
    if not folder:
        return Bucket(os.environ["ARTIFACT_BUCKET"])
    from mlcore.artifacts.local_folder_store import Folder  # noqa: PLC0415 -- 10 ms of a cold start in AWS

    return Folder(folder)
