"""Reads the stack in AWS behind a server: its resources and outputs, and makes clients of its
services."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from operate.module_loading import CannotRun

URLS = ("ApiUrl", "UiUrl")
"""The outputs of a stack that may be given as the URL of a checkup."""


class Deployment:
    """The CloudFormation stack of the server that the command ``doctor`` checks."""

    def __init__(self, session: Any, stack: str) -> None:
        self._session = session
        self.stack = stack

    def client(self, service: str) -> Any:
        return self._session.client(service)

    @cached_property
    def _description(self) -> Mapping[str, Any]:
        stacks = self.client("cloudformation").describe_stacks(StackName=self.stack)["Stacks"]
        described: Mapping[str, Any] = stacks[0]
        return described

    @property
    def outputs(self) -> Mapping[str, str]:
        return _outputs(self._description)

    @property
    def parameters(self) -> Mapping[str, str]:
        given = self._description.get("Parameters", ())
        return {parameter["ParameterKey"]: parameter["ParameterValue"] for parameter in given}

    @cached_property
    def resources(self) -> Mapping[str, tuple[str, str]]:
        """Type and physical id of each resource of the stack, by logical id."""
        pages = self.client("cloudformation").get_paginator("list_stack_resources")
        return {
            resource["LogicalResourceId"]: (
                resource["ResourceType"],
                resource.get("PhysicalResourceId", ""),
            )
            for page in pages.paginate(StackName=self.stack)
            for resource in page["StackResourceSummaries"]
        }

    def ids(self, resource_type: str) -> dict[str, str]:
        """Returns the physical ids of the CloudFormation stack's resources of a type, by logical
        id."""
        return {
            name: physical
            for name, (kind, physical) in self.resources.items()
            if kind == resource_type
        }


def deployment_of(url: str, stack: str | None, profile: str | None) -> Deployment | None:
    """Returns the CloudFormation stack with the name ``stack``, without checking that it exists,
    or, without a name, the stack that has the server's URL among its outputs. Returns None if
    neither ``stack`` nor ``profile`` is given.

    Raises:
        CannotRun: no name is given and no stack has the URL, or AWS does not answer.
    """
    if not stack and not profile:
        return None
    try:
        import boto3  # noqa: PLC0415 - a quarter of a second, for who works on AWS

        session = boto3.Session(profile_name=profile)
        if stack:
            return Deployment(session, stack)
        pages = session.client("cloudformation").get_paginator("describe_stacks").paginate()
        for page in pages:
            for described in page["Stacks"]:
                outputs = _outputs(described)
                if url.rstrip("/") in [outputs.get(name, "").rstrip("/") for name in URLS]:
                    return Deployment(session, described["StackName"])
    except (BotoCoreError, ClientError) as error:
        raise CannotRun(str(error)) from error
    raise CannotRun(f"no stack of this account and region has the output {url}: name it by --stack")


def _outputs(stack: Mapping[str, Any]) -> dict[str, str]:
    return {output["OutputKey"]: output["OutputValue"] for output in stack.get("Outputs", ())}
