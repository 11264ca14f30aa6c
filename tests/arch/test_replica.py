"""Copies in another region: off unless they are asked for, with roles that can do nothing else."""

from __future__ import annotations

from itertools import chain
from typing import Any
from uuid import uuid4

import pytest

from local.cloudformation import Resolver
from tests.arch import project

BUCKET = "arn:aws:s3:::mlflow-replica"
VAULT = "arn:aws:backup:us-west-2:123456789012:backup-vault:replica"
OF_FILES = {"ReplicaRole", "ReplicaRolePolicy"}
OF_THE_TABLE = {"BackupVault", "BackupPlan", "BackupSelection", "BackupRole"}
LONGEST_NAME = 50
"""Of a vault and of a plan (AWS, "CreateBackupVault")."""
ARTIFACTS = {"Fn::GetAtt": ["ArtifactBucket", "Arn"]}


def _conditions(**given: str) -> Resolver:
    return Resolver(project.template(), parameters={"Authentication": "none", **given})


@pytest.mark.parametrize(
    ("given", "made"),
    [
        ({}, set()),
        ({"ReplicaBucketArn": BUCKET}, OF_FILES),
        ({"ReplicaVaultArn": VAULT}, OF_THE_TABLE),
    ],
)
def test_nothing_is_copied_unless_it_is_asked_for(given: dict[str, str], made: set[str]) -> None:
    resolver = _conditions(**given)
    declared = project.template()["Resources"]
    conditional = OF_FILES | OF_THE_TABLE
    assert made == {name for name in conditional if resolver.condition(declared[name]["Condition"])}
    bucket = resolver.resolve(declared["ArtifactBucket"]["Properties"])
    assert ("ReplicationConfiguration" in bucket) == (made == OF_FILES)


def test_all_files_and_their_removal_are_copied() -> None:
    declared = project.template()["Resources"]["ArtifactBucket"]["Properties"]
    given = {"ReplicaBucketArn": BUCKET, "ArtifactVersionDays": "35"}
    bucket = _conditions(**given).resolve(declared)
    [rule] = bucket["ReplicationConfiguration"]["Rules"]
    assert rule["Filter"] == {"Prefix": ""}
    assert rule["Status"] == rule["DeleteMarkerReplication"]["Status"] == "Enabled"
    assert rule["Destination"] == {"Bucket": BUCKET}
    assert bucket["VersioningConfiguration"] == {"Status": "Enabled"}
    [needs] = project.template()["Rules"]["ReplicaHasVersions"]["Assertions"]
    assert needs["Assert"] == {"Fn::Not": [{"Fn::Equals": [{"Ref": "ArtifactVersionDays"}, "0"]}]}


def test_the_role_of_files_reads_here_and_writes_there() -> None:
    policy = project.resources("AWS::IAM::RolePolicy")["ReplicaRolePolicy"]
    assert policy["RoleName"] == {"Ref": "ReplicaRole"}
    by_resource = {
        str(statement["Resource"]): set(statement["Action"])
        for statement in policy["PolicyDocument"]["Statement"]
    }
    there = by_resource.pop(str({"Fn::Sub": "${ReplicaBucketArn}/*"}))
    assert there == {"s3:ReplicateObject", "s3:ReplicateDelete", "s3:ReplicateTags"}
    assert set(by_resource) == {str(ARTIFACTS), str({"Fn::Sub": "${ArtifactBucket.Arn}/*"})}
    assert all(action.startswith(("s3:Get", "s3:List")) for action in chain(*by_resource.values()))
    assert _trusted("ReplicaRole") == {"Service": "s3.amazonaws.com"}
    assert "Policies" not in project.resources("AWS::IAM::Role")["ReplicaRole"]


def test_one_table_is_backed_up_and_copied() -> None:
    resources = project.resources("AWS::Backup::BackupSelection")
    selection = resources["BackupSelection"]["BackupSelection"]
    assert selection["Resources"] == [{"Fn::GetAtt": ["Table", "Arn"]}]
    assert selection["IamRoleArn"] == {"Fn::GetAtt": ["BackupRole", "Arn"]}
    plan = project.resources("AWS::Backup::BackupPlan")["BackupPlan"]["BackupPlan"]
    [rule] = plan["BackupPlanRule"]
    [copy] = rule["CopyActions"]
    assert copy["DestinationBackupVaultArn"] == {"Ref": "ReplicaVaultArn"}
    assert copy["Lifecycle"]["DeleteAfterDays"] > rule["Lifecycle"]["DeleteAfterDays"]
    assert rule["TargetBackupVault"] == {"Ref": "BackupVault"}
    assert _trusted("BackupRole") == {"Service": "backup.amazonaws.com"}


def test_a_vault_outlives_its_stack_and_hinders_no_other() -> None:
    """A vault that has backups cannot be deleted (AWS, "Delete a backup vault"), and its name is
    taken as long as it exists."""
    vault: dict[str, Any] = project.template()["Resources"]["BackupVault"]
    assert vault["DeletionPolicy"] == "RetainExceptOnCreate"
    named = vault["Properties"]["BackupVaultName"]
    # The name ends with the id of the stack, a UUID, which no later stack of the same name has.
    assert named == {
        "Fn::Sub": [
            "mlflow-${Identity}",
            {"Identity": {"Fn::Select": [2, {"Fn::Split": ["/", {"Ref": "AWS::StackId"}]}]}},
        ]
    }
    assert len(f"mlflow-{uuid4()}") <= LONGEST_NAME


def _trusted(role: str) -> Any:
    [statement] = project.resources("AWS::IAM::Role")[role]["AssumeRolePolicyDocument"]["Statement"]
    return statement["Principal"]
