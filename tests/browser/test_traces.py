"""The pages about traces and about models, with those of the real client."""

from __future__ import annotations

import pytest

from tests.browser.conftest import Data, Traces
from tests.browser.visitor import Visitor
from tests.differential.rest import post

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(300),
]


def test_traces(visitor: Visitor, traces: Traces) -> None:
    visitor.open(f"/experiments/{traces.experiment}/traces")
    visitor.looks("traces", "An answer to: Who wrote Faust?", "talk-2", "OK", "Error", "4 of 4")
    assert visitor.page.get_by_text("An answer to").count() == len(traces.made)
    # The drawer of a trace, without MLflow's assistant.
    visitor.go(f"/experiments/{traces.experiment}/traces?selectedEvaluationId={traces.made[0]}")
    visitor.looks("trace-drawer", "look_up")
    offers = visitor.page.locator(
        '[data-component-id="mlflow.evaluations_review.modal.analyze-trace"]'
    )
    assert [offer.is_visible() for offer in offers.all()] == [False]
    visitor.go(f"/experiments/{traces.experiment}/traces?groupBy=session")
    visitor.looks("traces-of-sessions", "talk-1", "talk-2")


def test_trace(visitor: Visitor, traces: Traces) -> None:
    page = visitor.page
    visitor.open(f"/experiments/{traces.experiment}/traces/{traces.made[0]}")
    visitor.looks("trace", "answer", "look_up", "complete", "Success", "18 tokens")
    page.get_by_text("look_up").first.click()
    visitor.looks("trace-span", "what the atlas says: Where is Oslo?")
    visitor.go(f"/experiments/{traces.experiment}/traces/{traces.failed}")
    page.get_by_text("look_up").first.click()
    visitor.looks("trace-failed", "Events")
    visitor.looks("trace-error", "nothing found", "LookupError")


def test_session(visitor: Visitor, traces: Traces) -> None:
    visitor.open(f"/experiments/{traces.experiment}/chat-sessions")
    visitor.looks("sessions", "View Sessions in Traces tab")
    visitor.go(f"/experiments/{traces.experiment}/chat-sessions/talk-1")
    visitor.looks("session", "talk-1", "Where is Oslo?", "An answer to: How cold is it there?")
    visitor.looks("session-assessments", "helpful", "in the sout")


def test_logged_model(visitor: Visitor, data: Data) -> None:
    model = data.ask(post("logged-models/search", {"experiment_ids": [data.experiment]}))
    model_id = model["models"][0]["info"]["model_id"]
    visitor.open(f"/experiments/{data.experiment}/models")
    visitor.looks("logged-models", "regressor", "Ready", "learning_rate=")
    path = f"/experiments/{data.experiment}/models/{model_id}"
    visitor.go(path)
    visitor.looks("logged-model", model_id[:16], "final_mse", "max_depth", "Parameters (21)")
    visitor.go(f"{path}/artifacts")
    visitor.page.get_by_text("MLmodel").first.click()
    visitor.looks("logged-model-file", "model.pkl", "python_function")
    visitor.go(f"{path}/traces")
    visitor.looks("logged-model-traces", "Traces")


def test_model_version(visitor: Visitor, data: Data) -> None:
    model = data.ask(post("logged-models/search", {"experiment_ids": [data.experiment]}))
    model_id = model["models"][0]["info"]["model_id"]
    name = "regressor"
    data.ask(post("registered-models/create", {"name": name}))
    version = {"name": name, "source": f"models:/{model_id}", "model_id": model_id}
    data.ask(post("model-versions/create", version))
    visitor.open(f"/models/{name}/versions/1")
    visitor.looks("model-version", "Version 1", "Source Model", "Inputs (1)", "Outputs (1)")


def test_overview(visitor: Visitor, traces: Traces) -> None:
    path = f"/experiments/{traces.experiment}/overview"
    visitor.open(f"{path}/usage")
    visitor.looks("overview-usage", "p99", "Error Count", "Overall error rate: 25.0%")
    # The charts further down ask for their figures when they come into view.
    for _ in range(3):
        visitor.page.mouse.move(700, 600)
        visitor.page.mouse.wheel(0, 800)
        visitor.settle()
    visitor.looks("overview-tokens", "Token Usage", "54")
    visitor.go(f"{path}/quality")
    visitor.looks("overview-quality", "Quality Summary", "helpful", "Total aggregate scores")
    visitor.go(f"{path}/tool-calls")
    visitor.looks("overview-tools", "Tool Performance Summary", "look_up", "75.00%")
