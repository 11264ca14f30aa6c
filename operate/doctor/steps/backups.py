"""What a restore could start from."""

from __future__ import annotations

from operate.doctor.checkup import Checkup, expect


def read(checkup: Checkup) -> str:
    """The table has point-in-time recovery; the bucket of files says whether it keeps versions."""
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
