"""Which versions a rollback leads to, from any state of a stack's functions."""

from __future__ import annotations

from typing import Any

import pytest

from operate.versions import CannotMove, Function, roll_back


class Lambda:
    """Keeps where each alias was moved."""

    def __init__(self) -> None:
        self.moved: dict[str, str] = {}

    def update_alias(self, **given: Any) -> None:
        assert given["Name"] == "live"
        assert given["RoutingConfig"] == {"AdditionalVersionWeights": {}}
        self.moved[given["FunctionName"]] = given["FunctionVersion"]


def function(name: str, live: int, *deployments: str, first: int = 1) -> Function:
    settings = dict(enumerate(deployments, first))
    return Function(name, live, settings, deployments[-1], frozenset())


def rolled_back(*functions: Function) -> tuple[str, dict[str, str]]:
    service = Lambda()
    return roll_back(service, functions), service.moved


def test_all_move_to_the_deployment_before() -> None:
    outcome = rolled_back(
        function("runs", 3, "a", "b", "c"), function("users", 7, "b", "c", first=6)
    )
    assert outcome == ("b", {"runs": "2", "users": "6"})


def test_a_function_that_the_deployment_brought_stays() -> None:
    new = function("signin", 1, "c")
    both = function("runs", 2, "b", "c"), function("users", 2, "b", "c")
    assert rolled_back(*both, new) == ("b", {"runs": "1", "users": "1"})
    # Once more, with what is left: the new function is no reason to refuse.
    again = function("runs", 2, "a", "b", "c"), function("users", 2, "a", "b", "c")
    assert rolled_back(*again, new) == ("a", {"runs": "1", "users": "1"})


@pytest.mark.parametrize(
    ("functions", "why"),
    [
        ([function("runs", 1, "a"), function("users", 1, "a")], "deploy the release"),
        ([function("runs", 1, "a", "b"), function("users", 2, "a", "b")], "several deployments"),
        ([function("runs", 2, "a", "b"), function("users", 2, "0", "b")], "deploy the release"),
        ([function("runs", 1, "a", "b")], "deploy the release"),
        ([], "deploy the release"),
    ],
)
def test_nothing_moves_where_no_deployment_has_all(functions: list[Function], why: str) -> None:
    service = Lambda()
    with pytest.raises(CannotMove, match=why):
        roll_back(service, functions)
    assert service.moved == {}
