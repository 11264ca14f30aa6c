"""Checks which version of each function callers reach."""

from __future__ import annotations

from operate.doctor.checkup import Checkup, expect
from operate.versions import functions


def compare(checkup: Checkup) -> str:
    """Checks that the alias of each function serves the last deployment and nothing else. Returns
    the result as a text; raises Wrong."""
    aws = checkup.aws
    found = functions(aws.client("cloudformation"), aws.client("lambda"), aws.stack)
    behind = [one.name for one in found if one.settings.get(one.live) != one.latest]
    expect(not behind, f"aliases that do not serve the last deployment: {behind}")
    tried = [one.name for one in found if one.weighted]
    expect(not tried, f"a new version is being tried out: {tried}")
    return f"{len(found)} functions serve {found[0].latest}"
