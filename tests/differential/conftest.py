"""The servers under comparison; and which test or shared fixture it is that asks them."""

from collections.abc import Generator
from typing import Any

import pytest

from tests.differential.recorded_answers import (
    all_sent,
    is_live,
    refusals_first,
    sending,
)
from tests.differential.servers import *  # noqa: F403


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, Any]:
    if is_live(item.path):
        return (yield)
    with sending(item.path, item.name):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup() -> Generator[None, Any, Any]:
    with refusals_first():
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, Any, Any]:
    with refusals_first():
        result = yield
    all_sent()
    return result


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[Any], request: Any
) -> Generator[None, Any, Any]:
    """A fixture of one test alone is part of that test; one of a whole run asks no recording."""
    if fixturedef.scope in ("function", "session") or is_live(request.path):
        return (yield)
    with sending(request.path, f"fixture {fixturedef.argname} {request.param_index}"):
        with refusals_first():
            result = yield
        all_sent()
    return result
