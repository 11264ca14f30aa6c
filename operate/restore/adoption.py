"""Creates a stack that adopts an existing table, buckets and key.

CloudFormation imports them into a new stack that holds nothing else; ``sam deploy`` of the whole
template then adds the rest. A template for an import may have no transform and no outputs, each
resource in it needs a DeletionPolicy, and no resource may belong to another stack.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Any, Final

import yaml
from botocore.exceptions import ClientError, WaiterError

from operate.restore.failure import CannotRestore

IDENTIFIERS: Final = {
    "Table": ("AWS::DynamoDB::Table", "TableName"),
    "ArtifactBucket": ("AWS::S3::Bucket", "BucketName"),
    "SystemTablesBucket": ("AWS::S3::Bucket", "BucketName"),
    "SecretsKey": ("AWS::KMS::Key", "KeyId"),
}
"""Type and identifying property of each resource that can be adopted, by its logical id."""
CHANGE_SET: Final = "adopt"
_NAMES: Final = re.compile(r"\$\{([A-Za-z0-9]+)[.}]")


def import_template(built: Path, resources: Mapping[str, str]) -> dict[str, Any]:
    """Returns a template that declares only these resources, with the parameters and conditions
    that they refer to. Properties that refer to any other resource are left out.

    Args:
        built: the template that ``sam build`` wrote, which has no YAML anchors.
        resources: physical ids by logical id.

    Raises:
        CannotRestore: the template does not declare one of the resources.
    """
    whole = yaml.load(built.read_text(encoding="utf-8"), _Loader)  # noqa: S506 -- a SafeLoader
    declared = whole["Resources"]
    if missing := [name for name in resources if name not in declared]:
        raise CannotRestore(f"{built} declares no {', '.join(missing)}")
    chosen = {name: _alone(declared[name], declared.keys() - resources) for name in resources}
    template: dict[str, Any] = {"AWSTemplateFormatVersion": "2010-09-09", "Resources": chosen}
    for part in ("Conditions", "Parameters"):
        known = whole.get(part, {})
        if wanted := _reachable(template, known):
            template[part] = {name: known[name] for name in sorted(wanted)}
    return template


def adopt(
    cloudformation: Any,
    stack: str,
    template: Mapping[str, Any],
    resources: Mapping[str, str],
    parameters: Mapping[str, str],
) -> None:
    """Imports existing resources of AWS (table, buckets, key) into a new stack, and waits for the
    end of the import.

    Args:
        template: a result of :func:`import_template`.
        resources: physical ids by logical id.
        parameters: values of parameters; those that the template does not declare are ignored.

    Raises:
        CannotRestore: the stack exists, or the import fails.
        ClientError: CloudFormation refuses the request.
    """
    if _status(cloudformation, stack) not in (None, "REVIEW_IN_PROGRESS"):
        raise CannotRestore(f"there is a stack {stack}: adopt into a new one")
    given = {
        name: value for name, value in parameters.items() if name in template.get("Parameters", {})
    }
    cloudformation.create_change_set(
        StackName=stack,
        ChangeSetName=(name := f"{CHANGE_SET}-{int(time.time())}"),
        ChangeSetType="IMPORT",
        TemplateBody=json.dumps(template),
        Parameters=[{"ParameterKey": key, "ParameterValue": value} for key, value in given.items()],
        ResourcesToImport=[
            {
                "ResourceType": IDENTIFIERS[logical][0],
                "LogicalResourceId": logical,
                "ResourceIdentifier": {IDENTIFIERS[logical][1]: physical},
            }
            for logical, physical in resources.items()
        ],
    )
    try:
        cloudformation.get_waiter("change_set_create_complete").wait(
            StackName=stack, ChangeSetName=name
        )
        cloudformation.execute_change_set(StackName=stack, ChangeSetName=name)
        cloudformation.get_waiter("stack_import_complete").wait(StackName=stack)
    except WaiterError as error:
        raise CannotRestore(f"CloudFormation: {_reason(cloudformation, stack, name)}") from error


def stored_in(cloudformation: Any, stack: str) -> dict[str, str]:
    """Returns the physical ids of a stack's table, data buckets and KMS key, by logical id. A
    deleted stack can be named by its id.

    Raises:
        CannotRestore: CloudFormation refuses (such as for an unknown stack), or there is no table.
    """
    try:
        pages = cloudformation.get_paginator("list_stack_resources").paginate(StackName=stack)
        resources = {
            resource["LogicalResourceId"]: resource["PhysicalResourceId"]
            for page in pages
            for resource in page["StackResourceSummaries"]
            if resource["LogicalResourceId"] in IDENTIFIERS
        }
    except ClientError as error:
        raise CannotRestore(f"{stack}: {error.response['Error'].get('Message', error)}") from error
    if "Table" not in resources:
        raise CannotRestore(f"the stack {stack} has no table")
    return resources


def parameters_of(cloudformation: Any, stack: str) -> dict[str, str]:
    """Returns the values of a CloudFormation stack's parameters by name. To be called before the
    stack is deleted."""
    [described] = cloudformation.describe_stacks(StackName=stack)["Stacks"]
    return {
        parameter["ParameterKey"]: parameter["ParameterValue"]
        for parameter in described.get("Parameters", ())
    }


def remove_stack(cloudformation: Any, stack: str) -> None:
    """Deletes a CloudFormation stack but keeps its table, data buckets and KMS key. Does nothing if
    the stack does not exist.

    Raises:
        CannotRestore: the stack's template would delete one of these resources, or CloudFormation
            cannot delete the rest.
    """
    if _status(cloudformation, stack) is None:
        return
    declared = cloudformation.get_template(StackName=stack, TemplateStage="Processed")[
        "TemplateBody"
    ]
    if isinstance(declared, str):
        declared = yaml.load(declared, _Loader)  # noqa: S506 -- a SafeLoader
    for name in IDENTIFIERS:
        policy = declared["Resources"].get(name, {}).get("DeletionPolicy", "")
        if name in declared["Resources"] and not policy.startswith("Retain"):
            raise CannotRestore(f"the stack {stack} would delete its {name}: keep it first")
    cloudformation.delete_stack(StackName=stack)
    try:
        cloudformation.get_waiter("stack_delete_complete").wait(StackName=stack)
    except WaiterError as error:
        raise CannotRestore(f"the stack {stack} was not deleted: {error}") from error


def _status(cloudformation: Any, stack: str) -> str | None:
    try:
        [described] = cloudformation.describe_stacks(StackName=stack)["Stacks"]
    except ClientError as error:
        if "does not exist" in str(error):
            return None
        raise
    status = str(described["StackStatus"])
    return None if status == "DELETE_COMPLETE" else status


def _reason(cloudformation: Any, stack: str, name: str) -> str:
    try:
        change_set = cloudformation.describe_change_set(StackName=stack, ChangeSetName=name)
    except ClientError as error:
        return str(error)
    return str(change_set.get("StatusReason") or change_set["Status"])


def _alone(resource: Mapping[str, Any], others: AbstractSet[str]) -> dict[str, Any]:
    """Returns a resource without the properties that refer to one of ``others``, the resources that
    the import template lacks, such as the role that copies a bucket's files. The deployment after
    the import adds these properties."""
    properties = {
        name: value
        for name, value in resource["Properties"].items()
        if others.isdisjoint(_references(value))
    }
    return {**resource, "Properties": properties}


def _reachable(template: Mapping[str, Any], known: Mapping[str, Any]) -> set[str]:
    """Returns the names in ``known`` to which the template refers, directly or through other
    entries of ``known``."""
    wanted: set[str] = set()
    waiting = [template]
    while waiting:
        for name in _references(waiting.pop()):
            if name in known and name not in wanted:
                wanted.add(name)
                waiting.append(known[name])
    return wanted


def _references(value: Any) -> set[str]:
    """Returns all texts in a part of a template that could be the name of a parameter or a
    condition."""
    if isinstance(value, str):
        return {value, *_NAMES.findall(value)}
    if isinstance(value, Mapping):
        return set().union(*map(_references, value.values())) if value else set()
    if isinstance(value, list):
        return set().union(*map(_references, value)) if value else set()
    return set()


class _Loader(yaml.SafeLoader):
    """A YAML loader that reads the short forms of CloudFormation's functions (``!Ref``) as their
    long forms."""


def _function(loader: _Loader, suffix: str, node: yaml.Node) -> dict[str, Any]:
    value: Any
    if isinstance(node, yaml.ScalarNode):
        value = loader.construct_scalar(node)
    elif isinstance(node, yaml.SequenceNode):
        value = loader.construct_sequence(node, deep=True)
    else:
        value = loader.construct_mapping(node, deep=True)  # type: ignore[arg-type]
    if suffix == "GetAtt" and isinstance(value, str):
        value = value.split(".", 1)
    return {suffix if suffix in ("Ref", "Condition") else f"Fn::{suffix}": value}


_Loader.add_multi_constructor("!", _function)
