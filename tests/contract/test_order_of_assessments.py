"""Assessments of a trace are shown in the order in which the server got them, as on MLflow's
server, whatever times their clients give."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from hypothesis import given
from hypothesis import strategies as st

from mlcore.db import keys
from mlcore.db.expression import Update
from mlcore.db.table import table
from mlcore.entities.traces import Assessment, Trace
from mlcore.models.traces import Trace as TraceItem
from operate.transfer import traces as transferred
from operate.transfer.source_reader import SourceReader
from tests.contract.conftest import Store, examples
from tests.contract.trace_calls import info, start, tell

_time = st.sampled_from([None, "2026-01-02T00:00:00Z", "2026-01-01T00:00:00.500Z"])
_assessments = st.lists(st.tuples(_time, st.booleans()), min_size=1, max_size=4)


def _given(number: int, time: str | None, *, has_id: bool) -> dict[str, Any]:
    times = {} if time is None else {"create_time": time, "last_update_time": time}
    named = {"assessment_id": f"a-{uuid4().hex}"} if has_id else {}
    source = {"source_type": "CODE", "source_id": "c"}
    return {
        "assessment_name": str(number),
        "source": source,
        "feedback": {"value": number},
        **named,
        **times,
    }


@examples(15)
@given(st.lists(st.tuples(st.booleans(), _assessments), min_size=1, max_size=4), st.booleans())
def test_they_stay_in_the_order_of_their_arrival(
    shared_store: Store, requests: list[tuple[bool, list[tuple[str | None, bool]]]], again: bool
) -> None:
    trace_id = f"tr-{uuid4().hex}"
    tell("POST", "3.0/traces", start("0", trace_id))
    made = 0
    for with_trace, together in requests:
        new = [
            _given(number, time, has_id=has_id)
            for number, (time, has_id) in enumerate(together, start=made)
        ]
        made += len(new)
        # A repeated request makes the same assessments only if they have an id or a time.
        may_repeat = all("assessment_id" in each or "create_time" in each for each in new)
        times = 1 + (again and may_repeat)
        for attempt in range(times):
            if with_trace:
                tell("POST", "3.0/traces", start("0", trace_id, assessments=new))
                continue
            for each in new:
                path = f"3.0/traces/{trace_id}/assessments"
                if attempt == 0 or "create_time" in each:
                    tell("POST", path, {"assessment": each})
    shown = info(trace_id)["assessments"]
    assert [each["assessment_name"] for each in shown] == [str(number) for number in range(made)]


def _names(trace_id: str) -> str:
    return "".join(each["assessment_name"] for each in info(trace_id)["assessments"])


def test_an_import_keeps_the_order_of_its_source(shared_store: Store) -> None:
    trace_id = f"tr-{uuid4().hex}"
    made = Assessment(
        *("", trace_id, "", "feedback", 1, None, "CODE", "c", 1, 1),
        *(None, None, None, None, None, True),
    )
    reader = SourceReader.__new__(SourceReader)
    vars(reader).update(workspace="default")
    for names in ("ba", "badc"):
        there = tuple(made._replace(assessment_id=f"a-{name}", name=name) for name in names)
        trace = Trace(trace_id, "0", 1, None, "OK", None, None, None, {}, {}, there)
        transferred.item(reader, trace).write({"spans": {}}, None)
        assert _names(trace_id) == names


def test_what_0_1_0_stored_keeps_its_place(shared_store: Store) -> None:
    trace_id = f"tr-{uuid4().hex}"
    both = [
        {**_given(0, time, has_id=True), "assessment_name": name}
        for name, time in (("b", "2026-01-02T00:00:00Z"), ("a", "2026-01-01T00:00:00Z"))
    ]
    tell("POST", "3.0/traces", start("0", trace_id, assessments=both))
    assert _names(trace_id) == "ba"
    without = Update()
    without.remove(TraceItem.arrivals)  # which 0.1.0 does not write
    table.update(keys.trace("0", trace_id), without)
    assert _names(trace_id) == "ab"
    new = {**_given(0, None, has_id=True), "assessment_name": "c"}
    tell("POST", "3.0/traces", start("0", trace_id, assessments=[*both, new]))
    assert _names(trace_id) == "abc"
