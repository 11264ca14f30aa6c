"""Locates the storage of the system tables: a bucket of their own in AWS, a folder on a laptop.

It contains ``landing/`` (batches of the stream that are not yet published), ``alerts/`` (files with
alerts) and ``system/mlflow/<table>`` (the tables, each in the Delta format).
"""

from __future__ import annotations

import functools
import os
from typing import Final

from mlcore.artifacts.store_interface import Store

FOLDER: Final = "SYSTEM_TABLES_FOLDER"
"""Environment: a folder of this machine; the local runner sets it."""
BUCKET: Final = "SYSTEM_TABLES_BUCKET"
"""Environment: else, an S3 bucket."""

_TABLES: Final = "system/mlflow"


@functools.cache
def store() -> Store:
    """Returns the file store of the system tables: the configured folder, or else the configured
    bucket. Raises KeyError if the environment names neither a folder nor a bucket."""
    folder = os.environ.get(FOLDER)
    if not folder:
        from mlcore.artifacts.s3_store import Bucket  # noqa: PLC0415 -- not for a folder

        return Bucket(os.environ[BUCKET])
    from mlcore.artifacts.local_folder_store import Folder  # noqa: PLC0415 -- not in AWS

    return Folder(folder)


def table_uri(table: str) -> str:
    """Returns the address of a system table for readers of the Delta format: ``s3://…`` or a
    path."""
    folder = os.environ.get(FOLDER)
    if folder:
        return f"{os.path.realpath(folder)}/files/{_TABLES}/{table}"
    return f"s3://{os.environ[BUCKET]}/{_TABLES}/{table}"


def table_key(table: str) -> str:
    """Returns the prefix of the keys of a system table's files in the file store :func:`store`."""
    return f"{_TABLES}/{table}"
