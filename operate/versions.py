"""``python -m operate.versions``: shows, prunes or rolls back the versions of a deployed stack's
functions, which callers reach through the alias ``live``.
``show`` prints the settings that each alias serves, ``prune`` removes old versions, and
``rollback`` moves all aliases to the previous deployment. Only a deployment publishes versions.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from botocore.exceptions import BotoCoreError, ClientError

ALIAS: Final = "live"
KEPT: Final = 1
"""How many versions before the live one ``prune`` keeps. With SnapStart each costs as much as the
live one."""


class CannotMove(Exception):
    """Raised if the Lambda functions' aliases cannot be moved to another version of the functions;
    the message says why."""


class Function(NamedTuple):
    """One Lambda function of the stack, with its published versions."""

    name: str
    live: int
    settings: dict[int, str]
    """The description of each version, oldest first. Versions of one deployment share a
    description."""
    latest: str
    """The description of the last deployment."""
    weighted: frozenset[int]
    """Versions that get a share of the calls, in a canary deployment."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Shows, prunes or rolls back the versions of a stack's Lambda functions (``python -m
    operate.versions``). Returns 0 on success; 1 on a failure or, except after a rollback, if an
    alias does not serve the last deployment."""
    parser = argparse.ArgumentParser(prog="python -m operate.versions", description=__doc__)
    parser.add_argument("action", choices=("show", "prune", "rollback"))
    parser.add_argument("stack", help="name of the CloudFormation stack")
    parser.add_argument(
        "--keep", type=int, default=KEPT, help=f"versions to keep before the live one ({KEPT})"
    )
    given = parser.parse_args(arguments)
    try:
        import boto3  # noqa: PLC0415 - a quarter of a second, for who works on AWS

        service = boto3.client("lambda")
        stack_functions = functions(boto3.client("cloudformation"), service, given.stack)
        if given.action == "rollback":
            print(f"{given.stack}: all aliases answer with {roll_back(service, stack_functions)}")
            for each in stack_functions:
                if len(each.settings) == 1:
                    print(f"{each.name}: has no earlier version and is not moved")
            return 0
        if given.action == "prune":
            print(
                f"{given.stack}: {prune(service, stack_functions, given.keep)} old versions removed"
            )
    except (CannotMove, BotoCoreError, ClientError) as error:
        print(f"operate.versions: {error}", file=sys.stderr)
        return 1
    behind = [
        function
        for function in stack_functions
        if function.settings.get(function.live) != function.latest
    ]
    for each in stack_functions if given.action == "show" else behind:
        print(f"{each.name}: version {each.live}, {each.settings.get(each.live)} of {each.latest}")
    return 1 if behind else 0


def functions(cloudformation: Any, service: Any, stack: str) -> list[Function]:
    """Returns the Lambda functions of a CloudFormation stack, ordered by name."""
    pages = cloudformation.get_paginator("list_stack_resources").paginate(StackName=stack)
    names = sorted(
        resource["PhysicalResourceId"]
        for page in pages
        for resource in page["StackResourceSummaries"]
        if resource["ResourceType"] == "AWS::Lambda::Function"
    )
    return [_function(service, name) for name in names]


def _function(service: Any, name: str) -> Function:
    alias = service.get_alias(FunctionName=name, Name=ALIAS)
    weights = alias.get("RoutingConfig", {}).get("AdditionalVersionWeights", {})
    pages = service.get_paginator("list_versions_by_function").paginate(FunctionName=name)
    versions = {
        published["Version"]: published.get("Description", "")
        for page in pages
        for published in page["Versions"]
    }
    latest = versions.pop("$LATEST", "")
    numbered = {int(version): description for version, description in versions.items()}
    return Function(
        name,
        int(alias["FunctionVersion"]),
        dict(sorted(numbered.items())),
        latest,
        frozenset(int(version) for version in weights),
    )


def prune(service: Any, stack_functions: Sequence[Function], keep: int) -> int:
    """Deletes old versions of each Lambda function. Keeps the version that callers reach, newer
    ones, those to which an alias sends a part of the calls, and the ``keep`` versions before the
    live one. Returns how many were deleted."""
    removed = 0
    for function in stack_functions:
        older = [version for version in function.settings if version < function.live]
        for version in older[: max(len(older) - keep, 0)]:
            if version not in function.weighted:
                service.delete_function(FunctionName=function.name, Qualifier=str(version))
                removed += 1
    return removed


def roll_back(service: Any, stack_functions: Sequence[Function]) -> str:
    """Moves the alias of every Lambda function of a stack back to an earlier deployment: of those
    before the live one, the newest of which all these functions have a version. Returns its
    description.

    A function that the live deployment introduced has no earlier version and is not moved. That is
    harmless: only its own routes call it, and functions of two consecutive releases can use the
    same table.

    Raises:
        CannotMove: there is no such deployment, or the aliases serve different deployments.
    """
    moving = [each for each in stack_functions if len(each.settings) > 1]
    live = {function.settings.get(function.live, "") for function in moving}
    if len(live) > 1:
        raise CannotMove(f"the aliases are of several deployments: {', '.join(sorted(live))}")
    earlier = [
        {text: version for version, text in function.settings.items() if version < function.live}
        for function in moving
    ]
    shared = set.intersection(*(set(texts) for texts in earlier)) - live if earlier else set()
    if not shared:
        raise CannotMove(
            "not every function has the version before; deploy the release that you want back"
        )
    chosen = max(shared, key=lambda text: earlier[0][text])
    for each, texts in zip(moving, earlier, strict=True):
        service.update_alias(
            FunctionName=each.name,
            Name=ALIAS,
            FunctionVersion=str(texts[chosen]),
            RoutingConfig={"AdditionalVersionWeights": {}},
        )
    return chosen


if __name__ == "__main__":
    sys.exit(main())
