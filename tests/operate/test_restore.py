"""Restores on an emulator of DynamoDB, S3 and CloudFormation: tables, files by version, and a stack
that adopts both."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from local.table import ensure
from local.template import read
from operate.deployment import parameters_in
from operate.restore import __main__ as command
from operate.restore import adoption, files, tables
from operate.restore.failure import CannotRestore
from tests import ministack
from tests.engines import REGION, ROOT

pytestmark = [pytest.mark.contract, pytest.mark.timeout(240)]

TEMPLATE = ROOT / "template.yaml"
GIVEN = {"Authentication": "none", "ArtifactVersionDays": "35"}


class Cloud:
    """The clients of an emulator, and names that no other test uses."""

    def __init__(self, endpoint: str) -> None:
        self.endpoint = endpoint
        self.made = 0
        self.dynamodb, self.s3, self.kms, self.cloudformation = (
            boto3.client(
                name,
                endpoint_url=endpoint,
                region_name=REGION,
                aws_access_key_id="test",
                aws_secret_access_key="test",
            )
            for name in ("dynamodb", "s3", "kms", "cloudformation")
        )

    def name(self, noun: str) -> str:
        self.made += 1
        return f"restored-{noun}-{self.made}"

    def table(self) -> str:
        name = self.name("table")
        ensure(self.dynamodb, name, read(TEMPLATE, name, REGION, {}).table)
        self.dynamodb.update_continuous_backups(
            TableName=name, PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": True}
        )
        for number in range(30):
            item = {"PK": f"EXP#{number % 3}", "SK": f"R#{number}", "lsi2sk": str(number)}
            self.dynamodb.put_item(
                TableName=name, Item={key: {"S": value} for key, value in item.items()}
            )
        return name

    def bucket(self, *, versioned: bool = True) -> str:
        name = self.name("bucket")
        self.s3.create_bucket(Bucket=name)
        if versioned:
            self.s3.put_bucket_versioning(
                Bucket=name, VersioningConfiguration={"Status": "Enabled"}
            )
        return name

    def put(self, bucket: str, **contents: str) -> None:
        for key, content in contents.items():
            self.s3.put_object(Bucket=bucket, Key=key, Body=content.encode())

    def contents(self, bucket: str) -> dict[str, str]:
        listed = self.s3.list_objects_v2(Bucket=bucket).get("Contents", ())
        return {
            entry["Key"]: self.s3.get_object(Bucket=bucket, Key=entry["Key"])["Body"]
            .read()
            .decode()
            for entry in listed
        }

    def items(self, table: str) -> list[Any]:
        items = self.dynamodb.scan(TableName=table)["Items"]
        return sorted(items, key=lambda item: (item["PK"]["S"], item["SK"]["S"]))


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cloud]:
    with ministack.running(tmp_path_factory.mktemp("ministack")) as endpoint:
        yield Cloud(endpoint)


def pause() -> datetime:
    """A moment after everything before it and before everything after it: S3 counts seconds."""
    time.sleep(1.1)
    moment = datetime.now(UTC).replace(microsecond=0)
    time.sleep(1.1)
    return moment


def test_a_restored_table_has_what_a_restore_leaves_out(cloud: Cloud) -> None:
    source, target = cloud.table(), cloud.name("target")
    tables.restore(cloud.dynamodb, source, target, None, pause=0.05)
    assert cloud.items(target) == cloud.items(source)
    described = cloud.dynamodb.describe_table(TableName=target)["Table"]
    original = cloud.dynamodb.describe_table(TableName=source)["Table"]
    for kind in ("Local", "Global"):
        keys = [
            sorted(
                (index["IndexName"], str(index["KeySchema"]))
                for index in each[f"{kind}SecondaryIndexes"]
            )
            for each in (described, original)
        ]
        assert keys[0] == keys[1]
        assert len(keys[0]) == 5
    assert described["StreamSpecification"]["StreamViewType"] == "NEW_AND_OLD_IMAGES"
    assert described["DeletionProtectionEnabled"]
    ttl = cloud.dynamodb.describe_time_to_live(TableName=target)["TimeToLiveDescription"]
    assert (ttl["TimeToLiveStatus"], ttl["AttributeName"]) == ("ENABLED", "ttl")
    backups = cloud.dynamodb.describe_continuous_backups(TableName=target)
    recovery = backups["ContinuousBackupsDescription"]["PointInTimeRecoveryDescription"]
    assert recovery["PointInTimeRecoveryStatus"] == "ENABLED"
    stream = described["LatestStreamArn"]
    cloud.dynamodb.put_item(TableName=target, Item={"PK": {"S": "later"}, "SK": {"S": "x"}})
    tables.restore(cloud.dynamodb, source, target, None, pause=0.05)
    again = cloud.dynamodb.describe_table(TableName=target)["Table"]
    assert again["LatestStreamArn"] == stream, "a repetition changes nothing"
    assert len(cloud.items(target)) == 31


def test_a_table_that_aws_backup_restored_is_completed(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Such a table has its keys, indexes and items, and nothing else (AWS, "Restoring an Amazon
    DynamoDB table")."""
    ministack.use(cloud.endpoint, monkeypatch)
    table = cloud.name("restored")
    declared = read(TEMPLATE, table, REGION, {}).table
    bare = ("AttributeDefinitions", "KeySchema", "BillingMode")
    indexes = ("LocalSecondaryIndexes", "GlobalSecondaryIndexes")
    cloud.dynamodb.create_table(
        TableName=table, **{name: declared[name] for name in (*bare, *indexes)}
    )
    for _ in range(2):
        assert command.main(["complete", table]) == 0
        assert f"{table} has its indexes" in capsys.readouterr().out
        described = cloud.dynamodb.describe_table(TableName=table)["Table"]
        assert described["StreamSpecification"] == tables.STREAM
        assert described["DeletionProtectionEnabled"]
        ttl = cloud.dynamodb.describe_time_to_live(TableName=table)["TimeToLiveDescription"]
        assert ttl["AttributeName"] == "ttl"
        backups = cloud.dynamodb.describe_continuous_backups(TableName=table)
        recovery = backups["ContinuousBackupsDescription"]["PointInTimeRecoveryDescription"]
        assert recovery["PointInTimeRecoveryStatus"] == "ENABLED"
    other = cloud.name("other")
    cloud.dynamodb.create_table(
        TableName=other,
        AttributeDefinitions=[{"AttributeName": "PK", "AttributeType": "S"}],
        KeySchema=[{"AttributeName": "PK", "KeyType": "HASH"}],
        BillingMode="PAY_PER_REQUEST",
    )
    assert command.main(["complete", other]) == 1
    assert "local and global indexes" in capsys.readouterr().err


def test_what_cannot_be_restored_is_refused(cloud: Cloud) -> None:
    source, target = cloud.table(), cloud.name("target")
    long_ago = datetime.now(UTC) - timedelta(days=400)
    with pytest.raises(CannotRestore, match="can be restored from"):
        tables.restore(cloud.dynamodb, source, target, long_ago)
    with pytest.raises(CannotRestore, match="can be restored from"):
        tables.restore(cloud.dynamodb, source, target, datetime.now(UTC) + timedelta(days=1))
    plain = cloud.name("plain")
    key = [{"AttributeName": "PK", "AttributeType": "S"}]
    cloud.dynamodb.create_table(
        TableName=plain,
        AttributeDefinitions=key,
        KeySchema=[{"AttributeName": "PK", "KeyType": "HASH"}],
        BillingMode="PAY_PER_REQUEST",
    )
    with pytest.raises(CannotRestore, match="has no point-in-time recovery"):
        tables.restore(cloud.dynamodb, plain, target, datetime.now(UTC))
    with pytest.raises(CannotRestore, match="indexes"):
        tables.complete(cloud.dynamodb, plain)


def test_files_are_as_they_were(cloud: Cloud) -> None:
    bucket = cloud.bucket()
    cloud.put(bucket, stays="1", changed="1", removed="1", twice="1", gone="1")
    cloud.put(bucket, twice="2")
    cloud.s3.delete_object(Bucket=bucket, Key="gone")
    before = cloud.contents(bucket)
    moment = pause()
    cloud.put(bucket, changed="2", twice="3", younger="1", gone="again")
    cloud.put(bucket, changed="3")
    cloud.s3.delete_object(Bucket=bucket, Key="removed")
    after = cloud.contents(bucket)
    assert files.restore(cloud.s3, bucket, moment, writes=False) == (3, 3)
    assert cloud.contents(bucket) == after
    assert files.restore(cloud.s3, bucket, moment) == (3, 3)
    # What was not there at the moment stays: nothing names it.
    assert cloud.contents(bucket) == {**before, "younger": "1", "gone": "again"}
    assert files.restore(cloud.s3, bucket, moment) == (0, 6)
    kept = cloud.s3.list_object_versions(Bucket=bucket, Prefix="changed")["Versions"]
    assert len(kept) == 4, "what was newer is an older version now"


def test_files_without_versions_are_refused(cloud: Cloud) -> None:
    with pytest.raises(CannotRestore, match="keeps no versions"):
        files.restore(cloud.s3, cloud.bucket(versioned=False), datetime.now(UTC))


def test_the_import_declares_what_it_adopts_alone() -> None:
    adopted = {"Table": "t", "ArtifactBucket": "b", "SecretsKey": "k"}
    template = adoption.import_template(TEMPLATE, adopted)
    assert template["Resources"].keys() == adopted.keys()
    assert not {"Outputs", "Transform", "Globals", "Rules"} & template.keys()
    assert all(
        resource["DeletionPolicy"].startswith("Retain")
        for resource in template["Resources"].values()
    )
    assert {"DeletionProtection", "TableMaxReadUnits", "KeyRotationDays"} <= {
        *template["Parameters"]
    }
    assert "Authentication" not in template["Parameters"]
    assert {"HasMaxReads", "HasTableLimit"} <= {*template["Conditions"]}
    # A bucket whose files are copied names a role, which the import does not have.
    assert "Properties" in template["Resources"]["ArtifactBucket"]
    assert "ReplicaRole" not in json.dumps(template)
    with pytest.raises(CannotRestore, match="declares no Chair"):
        adoption.import_template(TEMPLATE, {"Chair": "c"})


def test_a_new_stack_adopts_a_restored_table_its_files_and_its_key(cloud: Cloud) -> None:
    source, bucket, stack = cloud.table(), cloud.bucket(), cloud.name("stack")
    key = cloud.kms.create_key()["KeyMetadata"]["KeyId"]
    target = cloud.name("target")
    tables.restore(cloud.dynamodb, source, target, None, pause=0.05)
    cloud.put(bucket, file="content")
    adopted = {"Table": target, "ArtifactBucket": bucket, "SecretsKey": key}
    template = adoption.import_template(TEMPLATE, adopted)
    adoption.adopt(cloud.cloudformation, stack, template, adopted, GIVEN)
    assert adoption.stored_in(cloud.cloudformation, stack) == adopted
    assert len(cloud.items(target)) == 30
    with pytest.raises(CannotRestore, match="there is a stack"):
        adoption.adopt(cloud.cloudformation, stack, template, adopted, GIVEN)
    other = cloud.name("stack")
    with pytest.raises(CannotRestore, match="already exists in stack"):
        adoption.adopt(cloud.cloudformation, other, template, adopted, GIVEN)
    # A stack goes, its data stay, and another stack adopts them.
    adoption.remove_stack(cloud.cloudformation, stack)
    assert len(cloud.items(target)) == 30
    assert cloud.contents(bucket) == {"file": "content"}
    adoption.remove_stack(cloud.cloudformation, stack)
    third = cloud.name("stack")
    adoption.adopt(cloud.cloudformation, third, template, adopted, GIVEN)
    assert adoption.stored_in(cloud.cloudformation, third) == adopted


def test_a_stack_that_would_lose_its_data_is_not_deleted(cloud: Cloud) -> None:
    stack = cloud.name("stack")
    body = (
        '{"Resources": {"Table": {"Type": "AWS::DynamoDB::Table", "Properties": {"BillingMode": '
        '"PAY_PER_REQUEST", "AttributeDefinitions": [{"AttributeName": "PK", "AttributeType": '
        '"S"}], "KeySchema": [{"AttributeName": "PK", "KeyType": "HASH"}]}}}}'
    )
    cloud.cloudformation.create_stack(StackName=stack, TemplateBody=body)
    cloud.cloudformation.get_waiter("stack_create_complete").wait(StackName=stack)
    with pytest.raises(CannotRestore, match="would delete its Table"):
        adoption.remove_stack(cloud.cloudformation, stack)
    table = adoption.stored_in(cloud.cloudformation, stack)["Table"]
    assert table in cloud.dynamodb.list_tables()["TableNames"]


def test_the_whole_of_a_stack_is_restored_into_a_new_one(
    cloud: Cloud,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    ministack.use(cloud.endpoint, monkeypatch)
    monkeypatch.chdir(tmp_path)
    source, bucket = cloud.table(), cloud.bucket()
    old, new = cloud.name("old"), cloud.name("new")
    key = cloud.kms.create_key()["KeyMetadata"]["KeyId"]
    before = {"Table": source, "ArtifactBucket": bucket, "SecretsKey": key}
    template = adoption.import_template(TEMPLATE, before)
    adoption.adopt(cloud.cloudformation, old, template, before, GIVEN)
    cloud.put(bucket, file="content")
    items = cloud.items(source)
    arguments = ["whole", old, "--at", "latest", "--into", new, "--template", str(TEMPLATE)]
    # Without the word that it may, it restores beside the stack and deletes nothing.
    assert command.main(arguments) == 1
    assert "--delete-old" in capsys.readouterr().err
    assert adoption.stored_in(cloud.cloudformation, old) == before
    assert list(tmp_path.iterdir()) == []
    assert command.main([*arguments, "--delete-old", "--parameter", "KeyRotationDays=90"]) == 0
    output = capsys.readouterr().out
    restored = adoption.stored_in(cloud.cloudformation, new)
    assert restored == {**before, "Table": restored["Table"]}
    assert restored["Table"] not in (source, "")
    assert cloud.items(restored["Table"]) == items
    assert cloud.items(source) == items, "the table of before is kept"
    assert cloud.contents(bucket) == {"file": "content"}
    with pytest.raises(ClientError, match="does not exist"):
        cloud.cloudformation.describe_stacks(StackName=old)
    # The old stack's parameters outlive it: in the new one, and in a file for its deployment.
    [kept] = tmp_path.iterdir()
    values = json.loads(kept.read_text())
    assert values["ArtifactVersionDays"] == "35"
    now = adoption.parameters_of(cloud.cloudformation, new)
    assert (now["ArtifactVersionDays"], now["KeyRotationDays"]) == ("35", "90")
    assert "ArtifactVersionDays=35" in parameters_in(kept)
    # The printed command ends what an interruption left, without the stack that is gone.
    [again] = [line for line in output.splitlines() if "continue with: " in line]
    words = again.partition("operate.restore ")[2].split()
    adoption.remove_stack(cloud.cloudformation, new)
    assert command.main([*words, "--template", str(TEMPLATE)]) == 0
    assert adoption.stored_in(cloud.cloudformation, new) == restored
    assert adoption.parameters_of(cloud.cloudformation, new) == now


def test_a_bucket_without_versions_does_not_stop_the_restore_of_the_table(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ministack.use(cloud.endpoint, monkeypatch)
    source, bucket, stack = cloud.table(), cloud.bucket(versioned=False), cloud.name("old")
    stored = {"Table": source, "ArtifactBucket": bucket}
    template = adoption.import_template(TEMPLATE, stored)
    given = {**GIVEN, "ArtifactVersionDays": "0"}
    adoption.adopt(cloud.cloudformation, stack, template, stored, given)
    target, moment = cloud.name("target"), datetime.now(UTC).isoformat()
    # The emulator knows no past; a repeated command goes on with the table that is there.
    tables.restore(cloud.dynamodb, source, target, None, pause=0.05)
    arguments = ["whole", stack, "--at", moment, "--into", cloud.name("new"), "--target", target]
    assert command.main(arguments) == 1
    printed = capsys.readouterr()
    assert f"s3://{bucket} keeps no versions" in printed.out
    assert f"{target} is ready" in printed.err
    assert cloud.items(target) == cloud.items(source)


def test_a_stack_without_an_api_cannot_be_stopped(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ministack.use(cloud.endpoint, monkeypatch)
    stack = cloud.name("frozen")
    body = {"Resources": {"Queue": {"Type": "AWS::SQS::Queue"}}}
    cloud.cloudformation.create_stack(StackName=stack, TemplateBody=json.dumps(body))
    cloud.cloudformation.get_waiter("stack_create_complete").wait(StackName=stack)
    assert command.main(["freeze", stack]) == 1
    assert "has no API" in capsys.readouterr().err


def test_the_command_says_what_is_wrong(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ministack.use(cloud.endpoint, monkeypatch)
    stack = cloud.name("none")
    whole = ["whole", stack, "--at", "latest", "--into", "x"]
    for arguments, message in (
        (["files", cloud.bucket(), "--at", "yesterday"], "--at yesterday"),
        (whole, "does not exist"),
        (["adopt", "--into", "x", "--table", "t", "--parameter", "a"], "NAME=VALUE"),
        (["files", "no-such-bucket-here", "--at", "2026-01-01"], "NoSuchBucket"),
    ):
        template = ["--template", str(TEMPLATE)] if "--into" in arguments else []
        assert command.main([*arguments, *template]) == 1
        assert message in capsys.readouterr().err
