"""``python -m operate.versions``: the versions of a deployed stack's functions, which callers reach
through the alias ``live``. Publishes none; a deployment does.

``show`` says which settings each alias answers with, ``prune`` removes versions that are older than
those kept, and ``rollback`` moves all aliases to the deployment before.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import boto3
from botocore.exceptions import BotoCoreError, ClientError

ALIAS: Final = "live"
KEPT: Final = 1
"""Versions before the live one that `prune` leaves. With SnapStart each costs as much as the live
one."""


class CannotMove(Exception):
    """The message says why."""


class Function(NamedTuple):
    """One function of the stack."""

    name: str
    live: int
    settings: dict[int, str]
    """The description of each version, oldest first. Versions of one deployment share theirs."""
    latest: str
    """The description of what was deployed last."""
    weighted: frozenset[int]
    """Versions that a canary sends calls to."""


def main(arguments: Sequence[str] | None = None) -> int:
    """0 when it could be done, 1 when not or when an alias stands where no deployment put it."""
    parser = argparse.ArgumentParser(prog="python -m operate.versions", description=__doc__)
    parser.add_argument("action", choices=("show", "prune", "rollback"))
    parser.add_argument("stack", help="name of the CloudFormation stack")
    parser.add_argument("--keep", type=int, default=KEPT, help=f"default: {KEPT}")
    given = parser.parse_args(arguments)
    try:
        service = boto3.client("lambda")
        found = functions(boto3.client("cloudformation"), service, given.stack)
        if given.action == "rollback":
            print(f"{given.stack}: all aliases answer with {roll_back(service, found)}")
            return 0
        if given.action == "prune":
            print(f"{given.stack}: {prune(service, found, given.keep)} old versions removed")
    except (CannotMove, BotoCoreError, ClientError) as error:
        print(f"operate.versions: {error}", file=sys.stderr)
        return 1
    behind = [one for one in found if one.settings.get(one.live) != one.latest]
    for one in found if given.action == "show" else behind:
        print(f"{one.name}: version {one.live}, {one.settings.get(one.live)} of {one.latest}")
    return 1 if behind else 0


def functions(cloudformation: Any, service: Any, stack: str) -> list[Function]:
    """Those of a stack, by name."""
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
    found = {
        one["Version"]: one.get("Description", "") for page in pages for one in page["Versions"]
    }
    latest = found.pop("$LATEST", "")
    numbered = {int(version): description for version, description in found.items()}
    return Function(
        name,
        int(alias["FunctionVersion"]),
        dict(sorted(numbered.items())),
        latest,
        frozenset(int(version) for version in weights),
    )


def prune(service: Any, found: Sequence[Function], keep: int) -> int:
    """Removes what is older than the live version and the ``keep`` before it; answers how many."""
    removed = 0
    for one in found:
        older = [version for version in one.settings if version < one.live]
        for version in older[: max(len(older) - keep, 0)]:
            if version not in one.weighted:
                service.delete_function(FunctionName=one.name, Qualifier=str(version))
                removed += 1
    return removed


def roll_back(service: Any, found: Sequence[Function]) -> str:
    """Moves every alias to the newest deployment before the live one of which all functions have a
    version, and answers its description.

    Raises:
        CannotMove: there is none, or the aliases do not agree.
    """
    live = {one.settings.get(one.live, "") for one in found}
    if len(live) != 1:
        raise CannotMove(f"the aliases are of several deployments: {', '.join(sorted(live))}")
    earlier = [
        {text: version for version, text in one.settings.items() if version < one.live}
        for one in found
    ]
    shared = set.intersection(*(set(texts) for texts in earlier)) - live
    if not shared:
        raise CannotMove("no earlier version is kept of every function; deploy the one before")
    chosen = max(shared, key=lambda text: earlier[0][text])
    for one, texts in zip(found, earlier, strict=True):
        service.update_alias(
            FunctionName=one.name,
            Name=ALIAS,
            FunctionVersion=str(texts[chosen]),
            RoutingConfig={"AdditionalVersionWeights": {}},
        )
    return chosen


if __name__ == "__main__":
    sys.exit(main())
