"""Restores the files of a versioned S3 bucket to a point in time, within the same bucket."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any, NamedTuple

from operate.restore.failure import CannotRestore


class Version(NamedTuple):
    """One version of a file in S3, or a delete marker."""

    key: str
    version_id: str
    modified: datetime
    latest: bool
    digest: str | None
    """S3's ETag; None for a delete marker."""


class Done(NamedTuple):
    """How many files of an S3 bucket a restore has reset to an earlier version, and how many it has
    left as they are."""

    restored: int
    kept: int


def keeps_versions(s3: Any, bucket: str) -> bool:
    """Returns whether a bucket has, or once had, versioning, so that earlier files may be there."""
    return s3.get_bucket_versioning(Bucket=bucket).get("Status") is not None


def restore(s3: Any, bucket: str, moment: datetime, *, writes: bool = True) -> Done:
    """For each file of a bucket, makes the S3 version that was the newest at ``moment`` the newest
    again. Returns how many files were restored and how many were not changed.

    Nothing is lost: newer versions become older ones. Files that did not exist at the moment stay;
    no item of the restored DynamoDB table refers to them. The call may be repeated.

    Args:
        writes: False only counts the files and restores none.

    Raises:
        CannotRestore: the bucket keeps no versions.
    """
    if not keeps_versions(s3, bucket):
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
    """Returns a sort key that orders versions by age. S3 gives times in seconds; of two versions
    within one second, the one that S3 marks as the latest is newer."""
    return version.modified, version.latest


def _is_newest(wanted: Version, versions: list[Version]) -> bool:
    """Returns whether the newest version already has the content of ``wanted``, because it is that
    version or a copy of it."""
    return any(version.latest and version.digest == wanted.digest for version in versions)


def _by_key(s3: Any, bucket: str) -> Iterator[list[Version]]:
    """Yields the list of versions of each key. S3 lists the versions of one key consecutively."""
    gathered: list[Version] = []
    for page in s3.get_paginator("list_object_versions").paginate(Bucket=bucket):
        rows = [_version(version, version["ETag"]) for version in page.get("Versions", ())]
        rows += [_version(version, None) for version in page.get("DeleteMarkers", ())]
        for version in sorted(rows, key=lambda row: row.key.encode()):
            if gathered and gathered[0].key != version.key:
                yield gathered
                gathered = []
            gathered.append(version)
    if gathered:
        yield gathered


def _version(row: Any, digest: str | None) -> Version:
    return Version(row["Key"], row["VersionId"], row["LastModified"], row["IsLatest"], digest)
