"""What calls of models cost: from the price list, from a deployment's own prices, and at what
effort."""

from __future__ import annotations

import json
import time
from types import SimpleNamespace
from typing import Any

import pytest

from mlcore import errors, process_cache
from mlcore.db import capacity
from mlcore.repos.settings import cached_setting, stored_settings
from tests.contract.conftest import Store
from tests.contract.trace_calls import Fields, export, info, span, start, tell, whole
from tests.contract.trace_story import new_trace

USAGE = {"input_tokens": 1000, "output_tokens": 100, "total_tokens": 1100}
TEN = {"input_per_million_tokens": 10, "output_per_million_tokens": 100}


def call(
    trace: str, number: int, model: str, provider: str | None = None, cost: Any = None
) -> Fields:
    attributes: Fields = {"mlflow.chat.tokenUsage": USAGE, "mlflow.llm.model": model}
    if provider:
        attributes["mlflow.llm.provider"] = provider
    if cost:
        attributes["mlflow.llm.cost"] = cost
    return span(trace, number, **attributes)


def spent(trace: str) -> tuple[dict[int, Any], Any]:
    """Total cost by span, and of the trace."""
    stored_trace = whole(f"tr-{trace}")
    of_spans = {}
    for stored_span in stored_trace["spans"]:
        for pair in stored_span["attributes"]:
            if pair["key"] == "mlflow.llm.cost":
                number = int(stored_span["name"].split()[1])
                of_spans[number] = told_total(pair["value"])
    text = stored_trace["trace_info"].get("trace_metadata", {}).get("mlflow.trace.cost")
    return of_spans, json.loads(text)["total_cost"] if text else None


def told_total(value: Fields) -> Any:
    listed = value.get("kvlist_value", {}).get("values", ())
    totals = [pair["value"]["double_value"] for pair in listed if pair["key"] == "total_cost"]
    return totals[0] if totals else None


def test_own_prices_count_before_the_list(store: Store) -> None:
    before, after, gone = new_trace(), new_trace(), new_trace()
    calls = (
        *(("gpt-4o", "openai"), ("gpt-4o", "azure"), ("gpt-4o", None)),
        *(("openai/gpt-4o", None), ("ours", None), ("ours", "nobody"), ("team/ours", "Vendor")),
    )

    def cost_of(trace: str) -> tuple[list[Any], Any]:
        export("0", [call(trace, n, *arguments) for n, arguments in enumerate(calls, 1)])
        of_spans, total = spent(trace)
        return [of_spans.get(n) for n in range(1, len(calls) + 1)], total

    listed = 1000 * 2.5e-6 + 100 * 10e-6
    assert cost_of(before)[0] == [pytest.approx(listed)] * 4 + [None] * 3
    stored_settings.put(
        "llm_prices",
        {"openai": {"gpt-4o": TEN}, "*": {"ours": TEN}, "vendor": {"team/ours": {**TEN, **ZERO}}},
    )
    own = 1000 * 10e-6 + 100 * 100e-6
    costs, total = cost_of(after)
    expected = [own, listed, own, own, own, own, 100 * 100e-6]
    assert costs == [pytest.approx(cost) for cost in expected]
    assert total == pytest.approx(sum(expected))
    stored_settings.delete("llm_prices")
    assert cost_of(gone)[0] == [pytest.approx(listed)] * 4 + [None] * 3
    assert spent(after)[1] == total


ZERO = {"input_per_million_tokens": 0}


def test_a_process_notices_within_a_minute(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    export("0", [call(new_trace(), 1, "ours")])
    with monkeypatch.context() as patch:
        patch.setattr(cached_setting, "forget", lambda _: None)  # another process sets it
        stored_settings.put("llm_prices", {"*": {"ours": TEN}})
    remembered, noticed = new_trace(), new_trace()
    export("0", [call(remembered, 1, "ours")])
    assert spent(remembered) == ({}, None)
    later = time.monotonic() + cached_setting.SECONDS
    clocks = SimpleNamespace(monotonic=lambda: later, time=time.time)
    monkeypatch.setattr(process_cache, "time", clocks)
    export("0", [call(noticed, 1, "ours")])
    assert spent(noticed)[1] == pytest.approx(0.02)


def test_what_is_told_is_kept(store: Store) -> None:
    trace = new_trace()
    costs = {"input_cost": 1.0, "output_cost": 2.0, "total_cost": 3.0}
    export(
        "0",
        [
            call(trace, 1, "gpt-4o", cost=costs),
            call(trace, 2, "gpt-4o", cost="null"),
        ],
    )
    assert spent(trace)[1] == 3.0
    given = new_trace()
    cost = json.dumps({**costs, "total_cost": 9.0})
    tell(
        "POST", "3.0/traces", start("0", f"tr-{given}", trace_metadata={"mlflow.trace.cost": cost})
    )
    export("0", [call(given, 1, "gpt-4o")])
    assert spent(given)[1] == 9.0


def test_costs_of_several_exports_add_up_over_the_tree(store: Store) -> None:
    trace = new_trace()
    large = 1000 * 2.5e-6 + 100 * 10e-6
    export("0", [span(trace, 3, 2, **model_attributes("gpt-4o"))])
    assert spent(trace)[1] == pytest.approx(large)
    export("0", [span(trace, 4, 1, **model_attributes("gpt-4o"))])
    assert spent(trace)[1] == pytest.approx(2 * large)
    export("0", [span(trace, 2, 1, **model_attributes("gpt-4o-mini")), span(trace, 1)])
    small = 1000 * 0.15e-6 + 100 * 0.6e-6
    assert spent(trace)[1] == pytest.approx(large + small)


def model_attributes(model: str) -> Fields:
    return {"mlflow.chat.tokenUsage": USAGE, "mlflow.llm.model": model}


@pytest.mark.parametrize("number", [1, 5])
def test_prices_take_no_round_trip(store: Store, number: int) -> None:
    """Of one trace or several in an export; of new ones, then of those that are there."""
    store.api.get("experiments/get", experiment_id="0")

    def trips() -> list[int]:
        traces, round_trips = [new_trace() for _ in range(number)], []
        for span_number in (1, 2):
            if not remembered:
                cached_setting.forget("llm_prices")
            export("0", [call(trace, span_number, "gpt-4o") for trace in traces])
            cost = capacity.last_measurement()
            assert cost is not None
            round_trips.append(cost.round_trips)
        for trace in traces:
            metadata = info(f"tr-{trace}")["trace_metadata"]
            assert json.loads(metadata["mlflow.trace.cost"])["total_cost"] == pytest.approx(0.007)
        return round_trips

    remembered = True
    trips()
    expected = trips()
    remembered = False
    assert trips() == expected
    assert expected[0] == 2


@pytest.mark.parametrize(
    "value",
    [
        *([], {"openai": []}, {"OpenAI": {"m": TEN}}, {"": {"m": TEN}}, {"openai": {"": TEN}}),
        *({"o": {"m": 3}}, {"o": {"m": {}}}, {"o": {"m": {**TEN, "x": 1}}}),
        {"o": {"m": {"input_per_million_tokens": 1}}},
        *(
            {"o": {"m": {**TEN, "input_per_million_tokens": wrong}}}
            for wrong in (-1, "1", True, None, float("nan"), float("inf"))
        ),
        {"o": {"m\ud800": TEN}},
        {"o": {f"{n:0200}": TEN for n in range(1000)}},
    ],
    ids=lambda value: str(value)[:60].encode("ascii", "replace").decode(),
)
def test_prices_are_checked(store: Store, value: Any) -> None:
    with pytest.raises(errors.InvalidParameterValue):
        stored_settings.put("llm_prices", value)
    assert stored_settings.find_all() == {}
