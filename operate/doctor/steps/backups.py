"""Checks the backups of the DynamoDB table and of the artifact files, for ``doctor``."""

from __future__ import annotations

from typing import Any

from botocore.exceptions import ClientError

from operate.doctor.checkup_state import Checkup, expect
from operate.doctor.stack import Deployment


def read(checkup: Checkup) -> str:
    """Checks that the table has point-in-time recovery, and that table and files are copied to
    another region if the stack's parameters say so. Returns a text that also says whether the
    artifact bucket keeps versions. Raises Wrong if recovery is off, the last copy failed or files
    are not copied, LeftOut if no stack is checked."""
    aws = checkup.aws
    described = aws.client("dynamodb").describe_continuous_backups(
        TableName=aws.outputs["TableName"]
    )["ContinuousBackupsDescription"]
    recovery = described["PointInTimeRecoveryDescription"]
    status = recovery["PointInTimeRecoveryStatus"]
    expect(status == "ENABLED", f"point-in-time recovery is {status}")
    bucket = aws.outputs["ArtifactBucketName"]
    versioning = aws.client("s3").get_bucket_versioning(Bucket=bucket).get("Status", "off")
    earliest = recovery.get("EarliestRestorableDateTime", "now")
    return (
        f"the table can be restored from {earliest} on; versions of files: {versioning};"
        f" copies in another region: {_copies(aws, bucket)}"
    )


def _copies(aws: Deployment, bucket: str) -> str:
    """Returns a text that says what is copied to another region. Raises Wrong if the stack's
    parameters demand a copy, and the last copy of the table failed or files are not copied."""
    copies = []
    if aws.parameters.get("ReplicaVaultArn"):
        copies.append(f"table, {_last_copy(aws)}")
    if replica := aws.parameters.get("ReplicaBucketArn"):
        _expect_replication(aws.client("s3"), bucket, replica)
        copies.append(f"files, {replica}")
    return "; ".join(copies) or "none"


def _last_copy(aws: Deployment) -> str:
    """Returns a text with the time of the last copy of the table to another backup vault. Raises
    Wrong if that copy failed."""
    table = aws.client("dynamodb").describe_table(TableName=aws.outputs["TableName"])["Table"]
    jobs: list[dict[str, Any]] = aws.client("backup").list_copy_jobs(
        ByResourceArn=table["TableArn"]
    )["CopyJobs"]
    ended = [job for job in jobs if job["State"] not in ("CREATED", "RUNNING")]
    if not ended:
        return "no copy yet"
    last = max(ended, key=lambda job: job["CreationDate"])
    message = f"{last['State']}: {last.get('StatusMessage', 'no message')}"
    expect(last["State"] == "COMPLETED", f"the last copy of the table is {message}")
    return f"last copy {last['CreationDate']:%Y-%m-%d %H:%M %Z}"


def _expect_replication(s3: Any, bucket: str, replica: str) -> None:
    """Raises Wrong if S3 does not copy the bucket's files to the replica."""
    try:
        rules = s3.get_bucket_replication(Bucket=bucket)["ReplicationConfiguration"]["Rules"]
    except ClientError as error:
        if error.response["Error"]["Code"] != "ReplicationConfigurationNotFoundError":
            raise
        rules = []
    targets = [rule["Destination"]["Bucket"] for rule in rules if rule["Status"] == "Enabled"]
    expect(replica in targets, f"{bucket} is not copied to {replica}")
