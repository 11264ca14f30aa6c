"""Checks the backups from which data could be restored."""

from __future__ import annotations

from operate.doctor.checkup import Checkup, expect


def read(checkup: Checkup) -> str:
    """Checks that the table has point-in-time recovery. Returns a text that also says whether the
    artifact bucket keeps versions. Raises Wrong if recovery is off."""
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
    return f"the table can be restored from {earliest} on; versions of files: {versioning}"
