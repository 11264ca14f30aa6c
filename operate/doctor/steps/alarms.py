"""The stack's alarms."""

from __future__ import annotations

from typing import Final

from operate.doctor.checkup import Checkup, expect

_TYPE: Final = "AWS::CloudWatch::Alarm"
_AT_ONCE: Final = 100
"""Names that one call of DescribeAlarms takes."""


def read(checkup: Checkup) -> str:
    """No alarm rings."""
    names = sorted(checkup.aws.ids(_TYPE).values())
    service = checkup.aws.client("cloudwatch")
    found = []
    for first in range(0, len(names), _AT_ONCE):
        answer = service.describe_alarms(AlarmNames=names[first : first + _AT_ONCE])
        found += answer["MetricAlarms"]
    rings = [
        f"{one['AlarmName']}: {one.get('AlarmDescription', '')}"
        for one in found
        if one["StateValue"] == "ALARM"
    ]
    expect(not rings, f"alarms ring: {rings}")
    deaf = sum(not one.get("AlarmActions") for one in found)
    heard = f"; {deaf} tell nobody" if deaf else ""
    return f"none of {len(found)} alarms rings{heard}"
