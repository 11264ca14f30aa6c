"""Where files are kept: one port, and behind it S3 in AWS or a folder on a laptop.

Keys are paths below the root of the store, with "/" between segments. A location that a client
knows, such as ``mlflow-artifacts:/1/<run>/artifacts``, becomes a key in :mod:`.locations`.
"""

from __future__ import annotations

import functools
import os

from mlcore.artifacts.locations import history_folder, internal, locate
from mlcore.artifacts.paths import below, exact_path, safe_path
from mlcore.artifacts.port import Entry, Opened, Part, Store
from mlcore.artifacts.s3 import Bucket

__all__ = [
    "Entry",
    "Opened",
    "Part",
    "Store",
    "below",
    "exact_path",
    "has_store",
    "history_folder",
    "internal",
    "locate",
    "safe_path",
    "store",
]


def has_store() -> bool:
    """Whether the environment names a store."""
    return bool(os.environ.get("ARTIFACT_FOLDER") or os.environ.get("ARTIFACT_BUCKET"))


@functools.cache
def store() -> Store:
    """The store of this process.

    Environment:
        ARTIFACT_FOLDER: a folder of this machine; set by the local runner.
        ARTIFACT_BUCKET: else, an S3 bucket.

    Raises:
        KeyError: neither is set.
    """
    folder = os.environ.get("ARTIFACT_FOLDER")
    if not folder:
        return Bucket(os.environ["ARTIFACT_BUCKET"])
    from mlcore.artifacts.folder import Folder  # noqa: PLC0415 -- 10 ms of a cold start in AWS

    return Folder(folder)
