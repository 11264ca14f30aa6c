"""The dialog "Detect Issues" of the UI: it sends traces to an endpoint's model, and the page of
issues shows what was found."""

from __future__ import annotations

import json
import time
import urllib.request
from typing import Any

import pytest

from tests.browser.conftest import Data
from tests.browser.visitor import Visitor
from tests.contract.trace_calls import resource_spans, span
from tests.differential.rest import Call, post
from tests.doubles import detective, providers

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(300),
]
V3 = "/api/3.0/mlflow/"
SECONDS = 60


def endpoints(data: Data, url: str) -> str:
    """Creates the endpoints ``another`` and ``detective``, of one model. Returns the name of the
    first of the gateway's endpoints, which may be of another test."""

    def made(path: str, **body: Any) -> Any:
        return data.ask(Call("POST", f"{V3}gateway/{path}", body))

    secret = made(
        "secrets/create",
        secret_name="key of the detective",
        secret_value={"api_key": "sk-abcdefghijkl"},
        provider="openai",
        auth_config={"api_base": url},
    )["secret"]["secret_id"]
    definition = made(
        "model-definitions/create",
        name="model of the detective",
        secret_id=secret,
        provider="openai",
        model_name="gpt-4o-mini",
    )["model_definition"]["model_definition_id"]
    linked = [{"model_definition_id": definition, "linkage_type": "PRIMARY"}]
    for name in ("another", "detective"):
        made("endpoints/create", name=name, model_configs=linked)
    return str(data.ask(Call("GET", f"{V3}gateway/endpoints/list"))["endpoints"][0]["name"])


def traces(data: Data, experiment: str) -> None:
    """Three traces, of which two have answers that are WRONG."""
    for number, text in enumerate(("fine", "WRONG one", "WRONG two")):
        trace = f"{0xD000 + number:032x}"
        attributes: Any = {"mlflow__spanInputs": "What?", "mlflow__spanOutputs": text}
        spans = resource_spans([span(trace, 1, start=number, end=number + 5, **attributes)])
        request = urllib.request.Request(
            f"{data.url}/v1/traces",
            data=json.dumps(spans).encode(),
            headers={
                "content-type": "application/json",
                "x-mlflow-experiment-id": experiment,
            },
        )
        urllib.request.urlopen(request).close()


def issues(data: Data, experiment: str) -> Any:
    body = {"experiment_id": experiment}
    return data.ask(Call("POST", f"{V3}issues/search", body)).get("issues")


def test_issues_are_detected_and_detection_is_scheduled(
    visitor: Visitor, data: Data, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    experiment = data.ask(post("experiments/create", {"name": "detected"}))["experiment_id"]
    traces(data, experiment)
    page = visitor.page
    with providers.serving(detective.answer) as provider:
        first = endpoints(data, f"{provider.url}/v1")
        visitor.open(f"/experiments/{experiment}/traces?startTimeLabel=ALL")
        for button in page.get_by_role("button", name="Got it").all():
            button.click()
        page.get_by_text("WRONG one").first.wait_for()
        page.get_by_role("button", name="Detect Issues").click()
        dialog = page.get_by_role("dialog")
        # The dialog chooses the first of the gateway's endpoints when it knows them.
        dialog.get_by_test_id("model-dropdown-trigger").get_by_text(first).wait_for()
        dialog.get_by_test_id("model-dropdown-trigger").click()
        page.get_by_test_id("model-group-gateway").click()
        page.get_by_text("detective", exact=True).locator("visible=true").click()
        visitor.looks("issue-detection-dialog", "3 traces selected", "detective")
        dialog.get_by_role("button", name="Run Analysis").click()
        dialog.wait_for(state="hidden")
        end = time.monotonic() + SECONDS
        while not issues(data, experiment) and time.monotonic() < end:
            page.wait_for_timeout(200)
        visitor.open(f"/experiments/{experiment}/issues")
        visitor.looks("issue-detection-issues", "Answers say WRONG")
        page.get_by_role("button", name="Schedule detection").click()
        dialog = page.get_by_role("dialog")
        dialog.get_by_test_id("model-dropdown-trigger").get_by_text(first).wait_for()
        dialog.get_by_role("combobox").first.click()
        page.get_by_role("option", name="Daily").click()
        visitor.looks("issue-detection-schedule", "Scheduled runs incur model usage costs")
        dialog.get_by_role("button", name="Save").click()
        dialog.wait_for(state="hidden")
        page.get_by_role("button", name="Scheduled: Daily").wait_for()
        visitor.looks("issue-detection-scheduled", "Scheduled: Daily")
    body = {"experiment_id": experiment}
    state = data.ask(Call("POST", "/ajax-api/3.0/mlflow/issues/schedule/state", body))
    soon = state["next_fire_time_ms"] - time.time() * 1000
    assert 0 < soon <= 86_400_000
