"""What the aliases of a deployed stack answer with, beside what was deployed."""

from __future__ import annotations

from typing import Any, NamedTuple

from tests.rehearsal.stack import Stack

CONFIGURATION = (
    "CodeSha256",
    "Description",
    "Environment",
    "Handler",
    "LoggingConfig",
    "MemorySize",
    "Role",
    "SnapStart",
    "Timeout",
)


class Published(NamedTuple):
    """One function's alias ``live``."""

    version: int
    configuration: dict[str, Any]
    """Of the version that the alias names."""
    wanted: dict[str, Any]
    """Of the function as the template says it, which callers reach through no alias."""


def functions(stack: Stack) -> dict[str, str]:
    """Logical id → name of each function."""
    pages = stack.client("cloudformation").get_paginator("list_stack_resources")
    return {
        resource["LogicalResourceId"]: resource["PhysicalResourceId"]
        for page in pages.paginate(StackName=stack.name)
        for resource in page["StackResourceSummaries"]
        if resource["ResourceType"] == "AWS::Lambda::Function"
    }


def published(stack: Stack) -> dict[str, Published]:
    """By logical id."""
    by_id, service = {}, stack.client("lambda")
    for logical_id, name in functions(stack).items():
        alias = service.get_alias(FunctionName=name, Name="live")
        live = service.get_function_configuration(FunctionName=name, Qualifier="live")
        latest = service.get_function_configuration(FunctionName=name)
        by_id[logical_id] = Published(
            int(alias["FunctionVersion"]), _configuration(live), _configuration(latest)
        )
    return by_id


def versions(stack: Stack) -> dict[str, list[int]]:
    """The numbers of all versions that there are, by logical id."""
    service = stack.client("lambda")
    return {
        logical_id: sorted(
            int(version["Version"])
            for version in service.list_versions_by_function(FunctionName=name)["Versions"]
            if version["Version"] != "$LATEST"
        )
        for logical_id, name in functions(stack).items()
    }


def _configuration(answer: dict[str, Any]) -> dict[str, Any]:
    layers = sorted(layer["Arn"] for layer in answer.get("Layers", ()))
    return {name: answer.get(name) for name in CONFIGURATION} | {"Layers": layers}


def wrong(by_id: dict[str, Published]) -> dict[str, Published]:
    """The functions whose callers do not reach what was deployed last."""
    return {
        name: function
        for name, function in by_id.items()
        if function.configuration != function.wanted
    }
