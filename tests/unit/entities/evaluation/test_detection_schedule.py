"""Schedules of issue detection, beside MLflow's own functions: texts of tags, and times in zones
whose clocks change."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mlflow.genai.discovery import checkpoint
from mlflow.genai.discovery import schedule as stock

from mlcore.entities.evaluation import detection_schedule as ours
from mlcore.entities.evaluation import fire_times

HOUR = 3_600_000
ZONES = sorted(available_timezones())
CHANGING = [
    *("Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Pacific/Apia"),
    *("America/Sao_Paulo", "Africa/Casablanca", "Asia/Kathmandu", "Antarctica/Troll"),
]
TIMES = st.integers(min_value=946_684_800_000, max_value=4_102_444_800_000)
TEXTS = st.one_of(
    st.sampled_from(["", "a", " a ", "team one", "a'b", "`", '"', "\\", "\x00", "x" * 201, "é"]),
    st.text(max_size=8),
)
ANYTHING = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 9), st.floats(), TEXTS, st.just([]), st.just({})
)
SCHEDULES = st.fixed_dictionaries(
    {"version": st.sampled_from([1, 1, 1, 1, 2, "1", None, 1.0, True])},
    optional={
        "cadence": st.sampled_from([*ours.CADENCES, *ours.CADENCES, "off", None, 1, ["daily"]]),
        "timezone": st.one_of(
            st.sampled_from([*CHANGING, "/etc/localtime", "../x", "Europe/", "UTC\x00", "Nowhere"]),
            TEXTS,
            ANYTHING,
        ),
        "paused": ANYTHING,
        "fireTime": st.one_of(
            st.sampled_from(
                ["9:5", " 23:59 ", "24:00", "12:60", "006:45", "²:00", "12", "12:", ":"]
            ),
            ANYTHING,
        ),
        "weekday": st.one_of(st.integers(0, 6), ANYTHING),
        "model": st.one_of(
            ANYTHING,
            st.fixed_dictionaries(
                {},
                optional={
                    "endpointName": ANYTHING,
                    "provider": TEXTS,
                    "model": TEXTS,
                    "secretId": ANYTHING,
                },
            ),
        ),
    },
)


def near_changes(zone: str) -> list[int]:
    """Times at which the clocks of a zone are changed, from 2010 to 2030."""
    known, times = ZoneInfo(zone), []
    first = int(datetime(2010, 1, 1, tzinfo=UTC).timestamp())
    offset = None
    for second in range(first, first + 20 * 366 * 86_400, 12 * 3600):
        current = datetime.fromtimestamp(second, known).utcoffset()
        if offset is not None and current != offset:
            times.append(second * 1000)
        offset = current
    return times


CHANGES = {zone: near_changes(zone) for zone in CHANGING}


@st.composite
def moments(draw: Any) -> tuple[str, int]:
    """A zone and a time, often about a change of its clocks."""
    if draw(st.booleans()):
        return draw(st.sampled_from(ZONES)), draw(TIMES)
    zone = draw(st.sampled_from([zone for zone in CHANGING if CHANGES[zone]]))
    time = draw(st.sampled_from(CHANGES[zone])) + draw(st.integers(-200 * HOUR, 200 * HOUR))
    return zone, time


@st.composite
def pairs(draw: Any, zone: str) -> tuple[ours.Schedule, stock.DetectionSchedule]:
    cadence = draw(st.sampled_from(ours.CADENCES))
    at = f"{draw(st.integers(0, 23)):02d}:{draw(st.sampled_from([0, 1, 15, 30, 59])):02d}"
    weekday = draw(st.integers(0, 6))
    return (
        ours.Schedule(cadence, zone, at, weekday, False, None),
        stock.DetectionSchedule(
            stock.DetectionCadence(cadence), zone, fire_time=at, weekday=weekday
        ),
    )


@given(st.data())
def test_times_are_mlflows(data: st.DataObject) -> None:
    zone, time = data.draw(moments())
    mine, theirs = data.draw(pairs(zone))
    assert mine.timing == theirs.timing
    assert fire_times.following(mine, time) == stock.next_fire_time_ms(theirs, time)
    now = time + data.draw(st.integers(0, 30 * 24 * HOUR))
    state = stock.DetectionScheduleState(last_fire_time_ms=time)
    assert fire_times.due(mine, time, now) == stock.due_occurrence_ms(theirs, state, now)


@given(st.data())
def test_fire_times_follow_one_another(data: st.DataObject) -> None:
    zone, time = data.draw(moments())
    mine, _ = data.draw(pairs(zone))
    first = fire_times.following(mine, time)
    assert time < first <= time + fire_times.INTERVAL_MS[mine.cadence] + 25 * HOUR
    assert fire_times.due(mine, time, first - 1) is None
    assert fire_times.due(mine, time, first) == first
    assert fire_times.following(mine, first) > first


@given(SCHEDULES)
def test_schedules_are_read_as_mlflow_does(values: dict[str, Any]) -> None:
    text = json.dumps(values)
    mine = ours.parse_schedule(text)
    try:
        theirs = stock.parse_detection_schedule(text)
    except OSError:  # a folder of zones, or a name too long for a file: MLflow's server fails
        assert mine is None or mine.timezone == "UTC"
        return
    except TypeError:  # an array as cadence cannot be looked up in Python 3.11
        assert mine is None
        return
    assert (mine is None) == (theirs is None)
    if mine is None or theirs is None:
        return
    assert (mine.timing, mine.is_paused) == (theirs.timing, theirs.paused)
    chosen = theirs.model
    if chosen is None or not (chosen.endpoint_name or chosen.secret_id):
        assert mine.model is None
        return
    assert mine.model is not None
    key = mine.model.saved_key
    assert (mine.model.uri, mine.model.endpoint_name, key.secret_id if key else "") == (
        chosen.to_model_uri(),
        chosen.endpoint_name,
        chosen.secret_id,
    )


@pytest.mark.parametrize(
    "text", [None, "", "{", "null", "[]", "1", '"x"', "[" * 100_000, '{"version": 1}', "1" * 9_999]
)
def test_texts_that_are_no_schedule(text: str | None) -> None:
    assert ours.parse_schedule(text) is None
    assert ours.parse_state(text) is None
    assert ours.trace_filter(text) == ""


@given(
    st.lists(
        st.one_of(
            ANYTHING,
            st.fixed_dictionaries(
                {"key": st.one_of(TEXTS, ANYTHING)},
                optional={
                    "field": st.sampled_from(["tag", "metadata", None, 1]),
                    "operator": st.sampled_from(["=", "!=", None]),
                    "value": st.one_of(TEXTS, ANYTHING),
                },
            ),
        ),
        max_size=22,
    )
)
def test_filters_are_mlflows(entries: list[Any]) -> None:
    text = json.dumps(entries)
    clauses = [clause.to_filter_clause() for clause in stock.parse_trace_filters(text)]
    assert ours.trace_filter(text) == " AND ".join(clauses)


@given(
    TIMES,
    st.one_of(st.none(), TIMES),
    st.one_of(st.none(), st.text(min_size=1)),
    st.one_of(st.none(), st.text()),
)
def test_states_are_mlflows(
    last: int, following: int | None, timing: str | None, run_id: str | None
) -> None:
    mine = ours.State(last, timing, following, following, run_id)
    theirs = stock.DetectionScheduleState(last, following, run_id, timing, following)
    assert mine.to_json() == theirs.to_json()
    assert ours.parse_state(theirs.to_json()) == mine


@given(st.sampled_from(ours.CADENCES), TIMES, st.one_of(st.none(), TIMES))
def test_windows_are_mlflows(cadence: str, now: int, scanned: int | None) -> None:
    mine = ours.Schedule(cadence, "UTC", "09:00", 0, False, None)
    known = None if scanned is None else checkpoint.DetectionCheckpoint(scanned)
    theirs = checkpoint.sample_window(known, now, checkpoint.FIRST_RUN_LOOKBACK_MS[cadence])
    assert fire_times.window_start(mine, now, scanned) == theirs.lower_bound_ms


def test_a_day_without_its_hour() -> None:
    """At 2:30 on the last Sunday of March there is no such time in Berlin, and in October two."""
    at_half_past = ours.Schedule("daily", "Europe/Berlin", "02:30", 0, False, None)

    def fires_after(*day: int) -> str:
        midnight = datetime(*day, tzinfo=ZoneInfo("Europe/Berlin"))  # type: ignore[misc, arg-type]
        time = fire_times.following(at_half_past, int(midnight.timestamp() * 1000))
        return datetime.fromtimestamp(time / 1000, UTC).isoformat()

    assert fires_after(2026, 3, 29) == "2026-03-29T01:30:00+00:00", "half past three"
    assert fires_after(2026, 10, 25) == "2026-10-25T00:30:00+00:00", "the first of two"
    assert fires_after(2026, 7, 1) == "2026-07-01T00:30:00+00:00"
