"""Two teams work with MLflow's client on one server that has workspaces.

python workspace_script.py TRACKING_URI
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import mlflow
from mlflow import MlflowClient
from mlflow.exceptions import MlflowException


def fails(code: str, call: Callable[..., object], *arguments: object) -> None:
    error_code = "nothing"
    try:
        call(*arguments)
    except MlflowException as refused:
        error_code = refused.error_code
    assert error_code == code, (call, error_code)


def work(team: str) -> str:
    """The same names in each workspace."""
    mlflow.set_experiment("same")
    with mlflow.start_run(run_name="run") as run:
        mlflow.log_metric("m", 1)
        mlflow.log_param("team", team)
        mlflow.log_text(team, "notes/team.txt")

        def predict(model_input: list[str]) -> list[str]:
            return [team for _ in model_input]

        logged = mlflow.pyfunc.log_model(
            name="model",
            python_model=predict,
            registered_model_name="same",
            pip_requirements=["mlflow"],
        )
    client = MlflowClient()
    client.set_registered_model_alias("same", "champion", "1")
    loaded = mlflow.pyfunc.load_model("models:/same@champion")
    assert list(loaded.predict(["x"])) == [team]
    mlflow.genai.register_prompt("prompt", f"{team}: {{{{question}}}}")

    @mlflow.trace
    def answer(question: str) -> str:
        return f"{team} {question}"

    answer("why")
    mlflow.flush_trace_async_logging()
    assert logged.model_id
    return str(run.info.run_id)


def main(uri: str) -> None:
    mlflow.set_tracking_uri(uri)
    client = MlflowClient()
    for team in ("red", "blue"):
        made = mlflow.create_workspace(team, description=f"of {team}")
        assert (made.name, made.description) == (team, f"of {team}")
    assert [workspace.name for workspace in mlflow.list_workspaces()] == ["blue", "default", "red"]
    assert mlflow.update_workspace("red", description="changed").description == "changed"
    assert mlflow.get_workspace("red").description == "changed"
    fails("RESOURCE_ALREADY_EXISTS", mlflow.create_workspace, "red")
    runs = {}
    for team in ("red", "blue"):
        mlflow.set_workspace(team)
        runs[team] = work(team)
    for team, other in (("red", "blue"), ("blue", "red")):
        mlflow.set_workspace(team)
        mlflow.set_experiment("same")
        assert client.get_run(runs[team]).data.params == {"team": team}
        fails("RESOURCE_DOES_NOT_EXIST", client.get_run, runs[other])
        listed = mlflow.search_runs(search_all_experiments=True, output_format="list")
        assert [run.info.run_id for run in listed] == [runs[team]]
        assert mlflow.artifacts.load_text(f"runs:/{runs[team]}/notes/team.txt") == team
        [version] = client.search_model_versions("name = 'same'")
        assert version.run_id == runs[team]
        assert mlflow.genai.load_prompt("prompts:/prompt/1").template.startswith(team)
        [trace] = mlflow.search_traces(return_type="list")
        assert trace.data.spans[0].outputs == f"{team} why"
        with tempfile.TemporaryDirectory() as folder:
            path = client.download_artifacts(runs[team], "notes", folder)
            assert (Path(path) / "team.txt").read_text() == team
    mlflow.set_workspace("nowhere")
    fails("RESOURCE_DOES_NOT_EXIST", client.search_experiments)
    mlflow.set_workspace("default")
    assert [experiment.name for experiment in client.search_experiments()] == ["Default"]
    assert client.search_registered_models() == []
    fails("INVALID_STATE", mlflow.delete_workspace, "red")
    mlflow.delete_workspace("red", mode="CASCADE")
    assert [workspace.name for workspace in mlflow.list_workspaces()] == ["blue", "default"]
    mlflow.delete_workspace("blue", mode="SET_DEFAULT")
    assert client.get_run(runs["blue"]).data.params == {"team": "blue"}
    assert client.get_model_version_by_alias("same", "champion").run_id == runs["blue"]


if __name__ == "__main__":
    main(sys.argv[1])
    sys.stdout.write("ok\n")
