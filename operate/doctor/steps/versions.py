"""The version of each function that callers reach."""

from __future__ import annotations

from operate.doctor.checkup import Checkup, expect
from operate.versions import functions


def compare(checkup: Checkup) -> str:
    """All aliases serve the last deployment, alone."""
    aws = checkup.aws
    found = functions(aws.client("cloudformation"), aws.client("lambda"), aws.stack)
    behind = [one.name for one in found if one.settings.get(one.live) != one.latest]
    expect(not behind, f"aliases that do not serve the last deployment: {behind}")
    tried = [one.name for one in found if one.weighted]
    expect(not tried, f"a new version is being tried out: {tried}")
    return f"{len(found)} functions serve {found[0].latest}"
