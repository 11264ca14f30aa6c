"""What people make, change and delete in the UI is made, changed and deleted."""

from __future__ import annotations

import json
from typing import Any

import pytest
from playwright.sync_api import TimeoutError as Late

from tests.browser.conftest import Data, Traces
from tests.browser.visitor import Visitor
from tests.differential.rest import Call, get, post
from tests.doubles import providers

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(300),
]
V3 = "/api/3.0/mlflow/"


def _made(data: Data, path: str, **body: Any) -> Any:
    return data.ask(Call("POST", V3 + path, body))


def test_a_judge_judges_three_traces(visitor: Visitor, data: Data, traces: Traces) -> None:
    def answer(request: providers.Asked) -> providers.Told:
        response = providers.openai(request)
        cold = "cold" in str(request.body["messages"])
        verdict = {"result": "rude" if cold else "kind", "rationale": "It reads so."}
        response.body["choices"][0]["message"]["content"] = json.dumps(verdict)
        return response

    page = visitor.page
    with providers.serving(answer) as provider:
        _register_judge(data, traces.experiment, f"{provider.url}/v1")
        visitor.open(f"/experiments/{traces.experiment}/traces")
        page.get_by_role("button", name="Got it").click()
        for trace_id in traces.made:
            page.get_by_label(f"Select trace {trace_id}").check(force=True)
        page.get_by_role("button", name="Actions").first.click()
        page.get_by_role("menuitem", name="Run scorers").click()
        dialog = page.get_by_role("dialog")
        dialog.get_by_placeholder("Search judges").fill("manners")
        dialog.get_by_role("checkbox").first.check(force=True)
        dialog.get_by_role("button", name="Run judge").click()
        visitor.looks("judged", 'Judge "manners" completed successfully.', "kind", "rude")
        assert len(provider.asked) == 3
    visitor.go(f"/experiments/{traces.experiment}/traces/{traces.made[1]}")
    page.get_by_label("Assess trace").click()
    visitor.looks("judged-trace", "manners", "rude")
    verdicts = [_verdicts(data, trace_id) for trace_id in traces.made]
    assert verdicts == [["kind"], ["rude"], ["kind"]]


def _verdicts(data: Data, trace_id: str) -> list[str]:
    trace = data.ask(Call("GET", f"{V3}traces/{trace_id}"))["trace"]
    assessments = trace["trace_info"]["assessments"]
    return [
        assessment["feedback"]["value"]
        for assessment in assessments
        if assessment["assessment_name"] == "manners"
    ]


def _register_judge(data: Data, experiment: str, api_base: str) -> None:
    secret = _made(
        data,
        "gateway/secrets/create",
        secret_name="of a judge",
        secret_value={"api_key": "sk-abcdefghijkl"},
        provider="openai",
        auth_config={"api_base": api_base},
    )["secret"]["secret_id"]
    definition = _made(
        data,
        "gateway/model-definitions/create",
        name="of a judge",
        secret_id=secret,
        provider="openai",
        model_name="gpt-4o-mini",
    )["model_definition"]["model_definition_id"]
    linked = [{"model_definition_id": definition, "linkage_type": "PRIMARY"}]
    _made(data, "gateway/endpoints/create", name="judge", model_configs=linked)
    judge = {
        "name": "manners",
        "builtin_scorer_class": None,
        "instructions_judge_pydantic_data": {
            "instructions": "Is {{ outputs }}, the answer to {{ inputs }}, polite?",
            "model": "gateway:/judge",
            "feedback_value_type": {"type": "string"},
        },
    }
    serialized = json.dumps(judge)
    _made(
        data,
        "scorers/register",
        experiment_id=experiment,
        name="manners",
        serialized_scorer=serialized,
    )


def test_experiment(visitor: Visitor, data: Data) -> None:
    page = visitor.page
    # The UI asks whether the name is free.
    visitor.expected.add(("GET", "/ajax-api/2.0/mlflow/experiments/get-by-name", 404))
    visitor.open("/experiments")
    page.get_by_test_id("create-experiment-button").click()
    page.get_by_placeholder("Input an experiment name").fill("made by hand")
    page.get_by_role("dialog").get_by_role("button", name="Create").click()
    visitor.looks("experiment-made", "made by hand")
    made = data.ask(get("experiments/get-by-name", experiment_name="made by hand"))["experiment"]
    visitor.go(f"/experiments/{made['experiment_id']}/runs")
    page.get_by_test_id("overflow-menu-trigger").first.click()
    page.get_by_role("menuitem", name="Edit experiment").click()
    dialog = page.get_by_role("dialog")
    dialog.locator("input").first.fill("named by hand")
    dialog.get_by_role("button", name="Save").click()
    visitor.looks("experiment-renamed", "named by hand")
    data.ask(get("experiments/get-by-name", experiment_name="named by hand"))


def _add_alias(page: Any) -> None:
    """On a busy machine MLflow's dialog may close without saving what was chosen: then again."""
    dialog = page.get_by_role("dialog")
    for _ in range(3):
        page.get_by_role("button", name="Add").nth(1).click()
        dialog.get_by_role("combobox").first.click()
        dialog.get_by_role("combobox").first.press_sequentially("best")
        page.locator(".du-bois-light-select-item-option").get_by_text("best").first.click()
        # Without it, "Save" would save nothing.
        dialog.get_by_title("best", exact=True).first.wait_for()
        try:
            with page.expect_response("**/registered-models/alias*", timeout=10_000):
                dialog.get_by_role("button", name="Save").click()
        except Late:
            pass
        else:
            return
        finally:
            dialog.wait_for(state="detached")
    raise AssertionError("the alias was never sent")


def test_registered_model(visitor: Visitor, data: Data) -> None:
    page = visitor.page
    visitor.expected.add(("GET", "/ajax-api/2.0/mlflow/registered-models/get", 404))
    visitor.open("/models")
    page.get_by_role("dialog").get_by_role("button", name="Close").click()
    page.get_by_test_id("create-model-button").click()
    dialog = page.get_by_role("dialog")
    dialog.locator("input").first.fill("hand model")
    dialog.get_by_role("button", name="Create").click()
    visitor.looks("model-made", "hand model")
    source = {"name": "hand model", "source": "s3://elsewhere/model"}
    data.ask(post("model-versions/create", source))
    visitor.open("/models/hand%20model")
    page.get_by_test_id("descriptionEditButton").click()
    page.locator("textarea").first.fill("Made *here*")
    page.get_by_test_id("editable-note-save-button").click()
    visitor.looks("model-described", "Made here", "Version 1")
    _add_alias(page)
    # MLflow's page of a model does not load the aliases again after it saved one: its
    # `loadModelVersions` is called without `this`.
    visitor.open("/models/hand%20model")
    visitor.looks("model-alias", "@ best")
    model = data.ask(get("registered-models/get", name="hand model"))["registered_model"]
    assert (model["description"], model["aliases"][0]["alias"]) == ("Made *here*", "best")
    page.get_by_test_id("overflow-menu-trigger").first.click()
    page.get_by_role("menuitem", name="Delete").click()
    dialog.get_by_role("button", name="Delete").click()
    dialog.wait_for(state="detached")
    visitor.looks("model-deleted", "Registered Models")
    gone = data.api.send(get("registered-models/get", name="hand model"))
    assert gone.status == 404


def test_prompt(visitor: Visitor, data: Data) -> None:
    page = visitor.page
    visitor.open("/prompts")
    page.get_by_role("button", name="create").last.click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_placeholder("Provide an unique prompt name").fill("hand-prompt")
    dialog.get_by_placeholder("Type prompt content here").fill("Say {{ word }}")
    dialog.get_by_role("button", name="Create").click()
    visitor.looks("prompt-made", "hand-prompt", "Version 1")
    page.get_by_role("button", name="Create prompt version").click()
    dialog.locator("textarea").first.fill("Sing {{ word }}")
    dialog.get_by_role("button", name="Create").click()
    visitor.looks("prompt-version", "Version 2")
    page.get_by_role("button", name="More actions").click()
    page.get_by_role("menuitem", name="Delete").click()
    dialog.get_by_role("button", name="Delete").click()
    dialog.wait_for(state="detached")
    visitor.looks("prompt-deleted")
    gone = data.api.send(get("registered-models/get", name="hand-prompt"))
    assert gone.status == 404


def test_dataset(visitor: Visitor, data: Data, traces: Traces) -> None:
    page = visitor.page
    path = f"/experiments/{traces.experiment}/datasets"
    visitor.open(path)
    page.get_by_role("button", name="Create dataset").click()
    dialog = page.get_by_role("dialog")
    dialog.locator("input").first.fill("hand-dataset")
    dialog.get_by_role("button", name="Create").click()
    dialog.wait_for(state="detached")
    # The list of the UI is asked for anew with the next visit.
    visitor.open(path)
    visitor.looks("dataset-made", "hand-dataset")
    page.get_by_role("button", name="Actions for dataset hand-dataset").click()
    page.get_by_role("menuitem", name="Delete").click()
    dialog.get_by_role("button", name="Delete").click()
    dialog.wait_for(state="detached")
    visitor.looks("dataset-deleted")
    answer = _made(data, "datasets/search", filter_string="name = 'hand-dataset'")
    assert not answer.get("datasets")


def test_endpoint(visitor: Visitor, data: Data) -> None:
    page = visitor.page
    visitor.open("/gateway")
    page.get_by_role("button", name="Create").first.click()
    page.get_by_placeholder("my-endpoint").fill("hand-endpoint")
    page.get_by_placeholder("Search for a provider...").click()
    page.get_by_role("option", name="OpenAI").first.click()
    page.get_by_placeholder("Click to select a model").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_placeholder("Search").fill("gpt-4o-mini")
    dialog.get_by_text("gpt-4o-mini").first.click()
    dialog.get_by_role("button", name="Select").click()
    page.get_by_placeholder("my-api-key").fill("hand key")
    page.get_by_placeholder("Openai API Key").fill("sk-abcdefghijkl")
    page.get_by_role("button", name="Create").click()
    visitor.looks("endpoint-made", "hand-endpoint")
    visitor.go("/gateway")
    row = page.get_by_role("row").filter(has_text="hand-endpoint")
    row.get_by_role("checkbox").check(force=True)
    page.get_by_role("button", name="Delete").click()
    dialog.get_by_role("button", name="Delete").click()
    row.wait_for(state="detached")
    visitor.looks("endpoint-deleted")
