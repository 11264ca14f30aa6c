"""Brings a versioned bucket's files back to what they were at a point in time, in place."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any, NamedTuple

from operate.restore.failure import CannotRestore


class Version(NamedTuple):
    """One version of a file, or the mark of its deletion."""

    key: str
    version_id: str
    modified: datetime
    latest: bool
    digest: str | None
    """S3's ETag; None for a mark of deletion."""


class Done(NamedTuple):
    """How many files were brought back, and how many stay as they are."""

    restored: int
    kept: int


def restore(s3: Any, bucket: str, moment: datetime, *, writes: bool = True) -> Done:
    """Makes the newest version that a file had at the moment its newest again.

    Nothing is lost: what is newer becomes an older version. Files that are younger than the moment
    stay, because no item of the restored table names them. May be repeated.

    Args:
        writes: False only counts.

    Raises:
        CannotRestore: the bucket keeps no versions.
    """
    if s3.get_bucket_versioning(Bucket=bucket).get("Status") is None:
        raise CannotRestore(f"{bucket} keeps no versions: its files are as they are now")
    restored = kept = 0
    for versions in _by_key(s3, bucket):
        wanted = max(
            (version for version in versions if version.modified <= moment), key=_age, default=None
        )
        if wanted is None or wanted.digest is None or _is_newest(wanted, versions):
            kept += 1
            continue
        restored += 1
        if writes:
            source = {"Bucket": bucket, "Key": wanted.key, "VersionId": wanted.version_id}
            s3.copy(source, bucket, wanted.key)
    return Done(restored, kept)


def _age(version: Version) -> tuple[datetime, bool]:
    """S3 has the time in seconds; of two versions within one, the latest decides."""
    return version.modified, version.latest


def _is_newest(wanted: Version, versions: list[Version]) -> bool:
    """Whether the newest version has the same content, because it is the wanted one or a copy."""
    return any(version.latest and version.digest == wanted.digest for version in versions)


def _by_key(s3: Any, bucket: str) -> Iterator[list[Version]]:
    """Returns the versions of each key; S3 lists those of one key one after the other."""
    gathered: list[Version] = []
    for page in s3.get_paginator("list_object_versions").paginate(Bucket=bucket):
        rows = [_version(one, one["ETag"]) for one in page.get("Versions", ())]
        rows += [_version(one, None) for one in page.get("DeleteMarkers", ())]
        for one in sorted(rows, key=lambda row: row.key.encode()):
            if gathered and gathered[0].key != one.key:
                yield gathered
                gathered = []
            gathered.append(one)
    if gathered:
        yield gathered


def _version(row: Any, digest: str | None) -> Version:
    return Version(row["Key"], row["VersionId"], row["LastModified"], row["IsLatest"], digest)
