"""What people change from the UI arrives, and the UI shows it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.browser.conftest import Data
from tests.browser.visitor import Visitor
from tests.differential.rest import get, post

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(300),
]


@pytest.fixture
def run(data: Data, request: Any) -> tuple[str, str]:
    """(experiment, run) of its own, both named after the test."""
    name = request.node.name.replace("_", "-")
    made = data.ask(post("experiments/create", {"name": name}))
    body = {"experiment_id": made["experiment_id"], "run_name": f"run-of-{name}", "start_time": 1}
    created = data.ask(post("runs/create", body))
    return made["experiment_id"], created["run"]["info"]["run_id"]


def tags_of(data: Data, run_id: str) -> dict[str, str]:
    answer = data.ask(get("runs/get", run_id=run_id))
    return {tag["key"]: tag["value"] for tag in answer["run"]["data"].get("tags", [])}


def stage_of(data: Data, run_id: str) -> str:
    info = data.ask(get("runs/get", run_id=run_id))["run"]["info"]
    return str(info["lifecycle_stage"])


def test_run_is_deleted_and_restored(visitor: Visitor, data: Data, run: tuple[str, str]) -> None:
    page = visitor.page
    experiment, run_id = run
    visitor.open(f"/experiments/{experiment}/runs")
    visitor.looks("delete-run-before", "1 matching run")
    page.locator(".ag-row input[type=checkbox]").first.check(force=True)
    page.get_by_test_id("runs-delete-button").click()
    page.get_by_test_id("delete-run-modal").get_by_role("button", name="Delete").click()
    visitor.looks("delete-run-after", "0 matching runs")
    assert stage_of(data, run_id) == "deleted"
    page.get_by_test_id("lifecycle-filter").click()
    page.get_by_test_id("deleted-runs-menu-item").click()
    visitor.looks("restore-run-before", "1 matching run")
    page.locator(".ag-row input[type=checkbox]").first.check(force=True)
    page.get_by_test_id("runs-restore-button").click()
    page.get_by_role("dialog").get_by_role("button", name="Restore").click()
    visitor.looks("restore-run-after", "0 matching runs")
    assert stage_of(data, run_id) == "active"


def test_tag_and_note_of_a_run(visitor: Visitor, data: Data, run: tuple[str, str]) -> None:
    page = visitor.page
    experiment, run_id = run
    visitor.open(f"/experiments/{experiment}/runs/{run_id}")
    visitor.looks("run-edit-before", "No description")
    page.get_by_role("button", name="Edit description").first.click()
    page.locator("textarea").first.fill("Trained *twice*")
    page.get_by_test_id("editable-note-save-button").click()
    visitor.looks("run-note", "Trained")
    assert tags_of(data, run_id)["mlflow.note.content"] == "Trained *twice*"
    page.get_by_role("button", name="Add tags").first.click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("combobox").first.click()
    page.keyboard.type("team")
    page.keyboard.press("Enter")
    dialog.get_by_placeholder("Type a value").fill("blue")
    page.keyboard.press("Enter")
    visitor.looks("run-tag-dialog", "Save tags")
    dialog.get_by_role("button", name="Save tags").click()
    visitor.looks("run-tag", "team", "blue")
    assert tags_of(data, run_id)["team"] == "blue"


def test_experiment_is_deleted(visitor: Visitor, data: Data, run: tuple[str, str]) -> None:
    page = visitor.page
    experiment, _ = run
    name = "test-experiment-is-deleted"
    visitor.open("/experiments")
    row = page.get_by_role("row").filter(has_text=name)
    row.get_by_role("checkbox").check(force=True)
    page.get_by_test_id("delete-experiments-button").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    row.wait_for(state="detached")
    visitor.looks("experiments-deleted", "diabetes")
    answer = data.ask(get("experiments/get", experiment_id=experiment))
    assert answer["experiment"]["lifecycle_stage"] == "deleted"
    # The UI has no place that lists deleted experiments.
    data.ask(post("experiments/restore", {"experiment_id": experiment}))
    visitor.open("/experiments")
    visitor.looks("experiments-restored", name)
