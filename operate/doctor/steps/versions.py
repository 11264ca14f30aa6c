"""Checks which version of each Lambda function of the stack callers reach through its alias."""

from __future__ import annotations

from operate.doctor.checkup_state import Checkup, expect
from operate.versions import functions


def compare(checkup: Checkup) -> str:
    """A step of ``doctor``: checks that the live alias of each Lambda function sends all requests
    to the version of the last deployment. Returns the result as a text. Raises Wrong if one does
    not, LeftOut if no stack is checked."""
    aws = checkup.aws
    deployed = functions(aws.client("cloudformation"), aws.client("lambda"), aws.stack)
    behind = [
        function.name
        for function in deployed
        if function.settings.get(function.live) != function.latest
    ]
    expect(not behind, f"aliases that do not serve the last deployment: {behind}")
    tried = [function.name for function in deployed if function.weighted]
    expect(not tried, f"a new version is being tried out: {tried}")
    return f"{len(deployed)} functions serve {deployed[0].latest}"
