"""What the roles of template.yaml allow."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from tests.arch import project
from tests.arch.rights import Right

BASIC, IAM, OIDC = "HasBasic", "HasIam", "HasOidc"
"""The template's conditions for the ways to log in; the first has none of its own."""

ROLES = {
    name: role
    for name, role in project.resources("AWS::IAM::Role").items()
    if "lambda.amazonaws.com" in str(role["AssumeRolePolicyDocument"])
}
"""Of the functions."""


def _chosen(value: Any, condition: str) -> Any:
    """A value of the template under a condition."""
    if isinstance(value, dict) and "Fn::If" in value:
        name, yes, no = value["Fn::If"]
        return _chosen(yes if name == condition else no, condition)
    if isinstance(value, dict):
        return {key: _chosen(inner, condition) for key, inner in value.items()}
    if isinstance(value, list):
        kept = [_chosen(inner, condition) for inner in value]
        return [inner for inner in kept if inner != {"Ref": "AWS::NoValue"}]
    return value


def statements(role: str, condition: str) -> Iterator[dict[str, Any]]:
    declared = project.resources("AWS::IAM::Role")[role]
    for policy in _chosen(declared["Policies"], condition):
        yield from policy["PolicyDocument"]["Statement"]


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _resource(value: Any) -> str:
    """``Table`` of its ARN, ``Table/index/LSI1`` of an index's, ``${Name}`` of those that a
    parameter lists, ``Name.Alias`` of a function's."""
    if "Fn::GetAtt" in value:
        name, attribute = value["Fn::GetAtt"]
        return name if attribute == "Arn" else f"{name}.{attribute}"
    if "Fn::Split" in value:
        _, parameter = value["Fn::Split"]
        return f"${{{parameter['Ref']}}}"
    if "Ref" in value:
        return str(value["Ref"])
    return re.sub(r"\$\{(\w+)\.Arn\}", r"\1", value["Fn::Sub"])


def of(role: str, condition: str = BASIC) -> set[Right]:
    return {
        (action, _resource(resource))
        for statement in statements(role, condition)
        if statement["Effect"] == "Allow"
        for action in _listed(statement["Action"])
        for resource in _listed(statement["Resource"])
    }
