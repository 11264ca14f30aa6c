"""Faults of DynamoDB: answers that are lost before or after the request was done."""

from __future__ import annotations

from tests.contract.conftest import EXAMPLES
from tests.doubles.faulty import KILLED, Fault

ALIKE = {Fault.CUT, Fault.ANSWER_500, Fault.THROTTLED_API}
"""To the product they look as DEAD, ANSWER_LOST and THROTTLED do; only the long run has them."""


FAULTS = [fault for fault in Fault if EXAMPLES > 1 or fault not in ALIKE]


SHARP = {Fault.DEAD, Fault.DEAD_AFTER, Fault.ANSWER_LOST}


DONE_BEFORE = {"RESOURCE_ALREADY_EXISTS", "RESOURCE_DOES_NOT_EXIST"}
"""What a repeated creation or removal may say when the first one had gone through unheard."""


def faults_at(nth: int, kills: int, name: str) -> list[Fault]:
    """The sharp ones strike at every call, of the others every third one; all in the long run.

    Args:
        kills: at how many calls a process can be killed; later ones are calls like any other.
    """
    return [
        fault
        for number, fault in enumerate(FAULTS)
        if (nth <= kills if fault in KILLED else True)
        if EXAMPLES > 1 or fault in SHARP or (number + nth + len(name)) % 3 == 0
    ]
