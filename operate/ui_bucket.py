"""``python -m operate.ui_bucket STACK``: uploads the web UI's files to a stack's bucket.
Unchanged files are not uploaded. Old files are kept, because open pages still load them. Pages are
uploaded last, so that they never refer to missing files.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from local.http.ui_files import CHART_LIBRARY, DASHBOARD_PAGES, FOLDER, File, dashboards, files

OUTPUT = "UiBucketName"
_PAGES = (*DASHBOARD_PAGES, "index.html")


class CannotPublish(Exception):
    """Raised if the web UI's files cannot be uploaded; the message says why."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Uploads the web UI's files to a stack's bucket (``python -m operate.ui_bucket``). Returns 0
    if the bucket holds all files afterwards, otherwise 1."""
    parser = argparse.ArgumentParser(prog="python -m operate.ui_bucket", description=__doc__)
    parser.add_argument("stack", help="name of the CloudFormation stack")
    stack = parser.parse_args(arguments).stack
    try:
        import boto3  # noqa: PLC0415 - a quarter of a second, for who works on AWS

        bucket = bucket_of(boto3.client("cloudformation"), stack)
        sent, kept = publish(boto3.client("s3"), bucket, FOLDER)
    except (CannotPublish, BotoCoreError, ClientError) as error:
        print(f"operate.ui_bucket: {error}", file=sys.stderr)
        return 1
    print(f"s3://{bucket}: {sent} files sent, {kept} were there")
    return 0


def bucket_of(cloudformation: Any, stack: str) -> str:
    """Returns the name of the S3 bucket that a CloudFormation stack has for the UI's files. Raises
    CannotPublish if the stack has none."""
    described = cloudformation.describe_stacks(StackName=stack)["Stacks"][0]
    for output in described.get("Outputs", ()):
        if output["OutputKey"] == OUTPUT:
            return str(output["OutputValue"])
    raise CannotPublish(f"the stack {stack} has no {OUTPUT}: it was deployed with Ui=false")


def publish(s3: Any, bucket: str, folder: Path) -> tuple[int, int]:
    """Uploads the UI's files that the bucket lacks or has in another version. Returns how many were
    uploaded, and how many the bucket already had. Raises CannotPublish if the UI's page or the
    chart library is missing in this machine's folders."""
    wanted = {path or "index.html": file for path, file in files(folder)}
    if "index.html" not in wanted:
        raise CannotPublish(f"{folder} holds no UI: run `make setup`")
    wanted |= dict(dashboards())
    if CHART_LIBRARY not in wanted:
        raise CannotPublish("the chart library of the dashboards is missing: run `make setup`")
    present = _present(s3, bucket)
    sent = 0
    for key, file in sorted(wanted.items(), key=lambda entry: entry[0] in _PAGES):
        content = file.path.read_bytes()
        digest = hashlib.md5(content, usedforsecurity=False).hexdigest()  # S3's ETag
        if present.get(key) != digest:
            _put(s3, bucket, key, file, content)
            sent += 1
    return sent, len(wanted) - sent


def _present(s3: Any, bucket: str) -> dict[str, str]:
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket)
    return {
        entry["Key"]: entry["ETag"].strip('"')
        for page in pages
        for entry in page.get("Contents", ())
    }


def _put(s3: Any, bucket: str, key: str, file: File, content: bytes) -> None:
    s3.put_object(
        Bucket=bucket,
        Key=key,
        Body=content,
        ContentType=file.content_type,
        CacheControl=file.cache_control,
    )


if __name__ == "__main__":
    sys.exit(main())
