"""The events of `sam local invoke` are requests that the functions answer."""

from __future__ import annotations

import json

import pytest

from tests.arch import project
from tests.rehearsal import events

EVENTS = sorted((project.ROOT / "events").glob("*.json"))


@pytest.mark.parametrize("path", EVENTS, ids=lambda path: path.stem)
def test_event_has_a_route(path: object) -> None:
    event = json.loads(path.read_text())  # type: ignore[attr-defined]
    if path.stem in project.BY_NAME:  # type: ignore[attr-defined]
        return
    if "Records" in event:
        assert project.consumer(event) in project.CONSUMERS.values()
        return
    assert event["version"] == "2.0"
    assert event["requestContext"]["routeKey"] in project.routes()


def test_each_function_has_an_event() -> None:
    answered = set()
    for path in EVENTS:
        event = json.loads(path.read_text())
        if path.stem in project.BY_NAME:
            answered.add(project.BY_NAME[path.stem])
        elif "Records" in event:
            answered.add(project.consumer(event))
        elif event.get("type") == "REQUEST":
            answered.add("authorizer")
        else:
            answered.add(project.routes()[event["routeKey"]])
    assert answered == set(project.handlers().values())


def test_each_event_has_an_answer_that_is_right() -> None:
    assert set(events.ANSWERS) == {path.stem for path in EVENTS}
    assert set(events.EFFECTS) <= set(events.ANSWERS)
