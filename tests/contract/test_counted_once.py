"""Counters of the gateway and of callers, when the answer to a write is lost and the write is
repeated."""

from __future__ import annotations

import itertools

import pytest

from mlcore.entities.gateway_limits import CallLimits
from mlcore.repos.gateway import usage
from mlcore.repos.gateway.usage import MINUTE_MS, LimitReached, Return, UsageClaim
from mlcore.repos.users import caller_usage
from tests.contract.api import Api
from tests.doubles.faulty import WRITES, Fault
from tests.doubles.fixtures import Doubles

NOW = 1_700_000_000_000 // MINUTE_MS * MINUTE_MS
LIMITS = CallLimits(requests_per_minute=10, requests_per_day=16)
CLAIMS = (
    (0, UsageClaim(requests=3, tokens=5)),
    (0, UsageClaim(requests=4, hold=7, unused=Return(NOW, requests=1))),
    (MINUTE_MS, UsageClaim(requests=8, tokens=1)),
    (MINUTE_MS, UsageClaim(requests=1, unused=Return(NOW + MINUTE_MS, requests=2))),
)
LOST = (Fault.ANSWER_LOST, Fault.ANSWER_500, Fault.REPEATED)


def counted() -> list[object]:
    """What each claim finds, in two minutes, and the refusal of one that has no room."""
    found: list[object] = [
        usage.count("user:ann", LIMITS, NOW + later, claim) for later, claim in CLAIMS
    ]
    with pytest.raises(LimitReached) as reached:
        usage.count("user:ann", LIMITS, NOW + MINUTE_MS, UsageClaim(requests=9))
    return [*found, reached.value.limit, reached.value.used]


def test_limits_of_the_gateway_count_once(broken: tuple[Api, Doubles]) -> None:
    _, doubles = broken
    expected = counted()
    for nth in itertools.count(1):
        for fault in LOST:
            doubles.direct.delete_item(TableName=doubles.table, Key=key_of(doubles))
            doubles.faulty.arm(fault, nth, WRITES)
            assert counted() == expected, (nth, fault)
            doubles.faulty.heal()
        if not doubles.faulty.fired:
            assert nth > len(CLAIMS)
            return


def key_of(doubles: Doubles) -> dict[str, dict[str, str]]:
    (item,) = doubles.direct.scan(TableName=doubles.table)["Items"]
    return {name: item[name] for name in ("PK", "SK")}


@pytest.mark.parametrize("fault", LOST)
def test_requests_of_callers_count_once(broken: tuple[Api, Doubles], fault: Fault) -> None:
    _, doubles = broken
    for nth, total in ((1, 2), (2, 5), (3, 9)):
        doubles.faulty.arm(fault, 1, WRITES)
        assert caller_usage.add("user:ann", 0, nth + 1) == total
        assert doubles.faulty.fired
        doubles.faulty.heal()
        assert caller_usage.totals(["user:ann"], 0) == [total]
