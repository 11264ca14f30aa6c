"""A scorer's settings of automatic scoring and its versions, written at the same time: the settings
that remain are those of the latest version, in whatever order the requests reach the table."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mlcore.auth.permissions import Grant
from mlcore.db.table import table
from mlcore.entities.evaluation.scorers import seal_of
from mlcore.repos.evaluation import online_scorers, scorers
from mlcore.repos.experiments import experiments
from mlcore.repos.users import grants
from tests.contract.code_scorer_calls import FLAG, code
from tests.contract.conftest import Store
from tests.contract.interleaved_calls import interleaved
from tests.contract.online_scoring_members import NAME, Members

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has cages")

ORDERS = st.builds(
    lambda first, before, between: [first] * before + [1 - first] * between + [first] * 30,
    st.integers(0, 1),
    st.integers(0, 9),
    st.integers(1, 9),
)
"""One request begins, the other one makes some calls or all, and then the first one goes on."""


@pytest.fixture
def members(store: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Members:
    monkeypatch.setenv(FLAG, "true")
    made = Members(store.api, monkeypatch, tmp_path)
    made.queue.waiting.clear()
    return made


def register(members: Members, user: str, source: str) -> int:
    text = json.dumps(code(source))
    return members.call(user, "POST", "register", {"serialized_scorer": text})[0]


def begin(members: Members, *, is_on: bool) -> None:
    """A scorer with one version that is code, in whose settings nothing of former tries is left."""
    table.delete(online_scorers.deletion("default", members.experiment, NAME).key)
    assert register(members, "owner", "return 'first'") == 200
    if is_on:
        assert members.set_rate("owner", 0.5) == 200


def seals(members: Members) -> tuple[str | None, str]:
    """That of the settings, and that of the latest version."""
    setting = members.setting()
    assert setting is not None
    experiment = experiments.get(members.experiment, "default").experiment
    latest = scorers.latest(experiment, NAME)
    assert latest is not None
    return setting.seal, seal_of(latest)


def _in_each_order(check: Callable[[list[int], bool], None]) -> None:
    searched = settings(
        max_examples=30,
        deadline=None,
        derandomize=True,
        suppress_health_check=[HealthCheck.function_scoped_fixture],
    )
    searched(given(ORDERS, st.booleans())(check))()


def register_second_while(members: Members, order: list[int], act: Callable[[], int]) -> None:
    """The owner registers another version, and ``act`` is done at the same time. Both succeed."""
    statuses = interleaved(order, [lambda: register(members, "owner", "return 'second'"), act])
    assert statuses == [200, 200]


def test_a_version_that_is_registered_while_the_scorer_is_turned_on(members: Members) -> None:
    def check(order: list[int], is_on: bool) -> None:
        begin(members, is_on=is_on)
        register_second_while(members, order, lambda: members.set_rate("owner", 1.0))
        setting, latest = seals(members)
        assert setting == latest

    _in_each_order(check)


def test_what_is_turned_off_while_a_version_is_registered_stays_so(members: Members) -> None:
    def check(order: list[int], is_on: bool) -> None:
        begin(members, is_on=is_on)
        register_second_while(members, order, lambda: members.set_rate("owner", 0.0))
        setting = members.setting()
        assert setting is not None
        assert (setting.sample_rate, setting.owner, setting.seal) == (0.0, None, None)

    _in_each_order(check)


def test_of_two_versions_that_are_registered_at_once_the_latest_judges(members: Members) -> None:
    def check(order: list[int], is_on: bool) -> None:
        begin(members, is_on=is_on)
        register_second_while(members, order, lambda: register(members, "owner", "return 'third'"))
        if is_on:
            setting, latest = seals(members)
            assert setting == latest

    _in_each_order(check)


def test_nobody_slips_a_version_in_who_may_not_let_it_judge(members: Members) -> None:
    """Either the version was there when the owner turned the scorer on, or it is refused."""
    grants.put(members.editor, "default", Grant("trace", "*", "DENY"))

    def check(order: list[int], is_on: bool) -> None:
        begin(members, is_on=is_on)
        refused, done = interleaved(
            order,
            [
                lambda: register(members, "editor", "return 'mine'"),
                lambda: members.set_rate("owner", 1.0),
            ],
        )
        assert done == 200
        assert refused in {200, 403}
        setting, latest = seals(members)
        assert setting == latest

    _in_each_order(check)
