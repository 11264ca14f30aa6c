"""The rules of a run's inputs and outputs: datasets and logged models."""

from __future__ import annotations

import json
from typing import Any

from mlcore.http import Request
from mlcore.limits.datasets import check_log_inputs
from mlcore.repos.runs import children as run_children
from mlcore.repos.runs import datasets, runs
from mlcore.repos.runs import writes as run_writes
from mlcore.repos.runs.runs import StoredRun
from mlcore.search.fields import DATASET_CONTEXT_TAG
from runs import messages as m


def log_inputs(message: m.LogInputs, request: Request) -> dict[str, Any]:
    """Links datasets and models to the run. What is linked already stays as it is, its tags
    included."""
    inputs = check_log_inputs(message.run_id, message.datasets)
    run = runs.load(message.run_id, request.workspace)
    runs.check_active(run)
    named = {
        run_children.input_key(entry.dataset.name, entry.dataset.digest): (
            run_children.DatasetReference(entry.dataset.name, entry.dataset.digest, entry.tags)
        )
        for entry in inputs
    }
    experiment_id = run.experiment.experiment_id
    datasets.ensure(experiment_id, [entry.dataset for entry in inputs])

    def link(run: StoredRun) -> tuple[dict[str, dict[str, str]], tuple[()]]:
        linked = run.document.texts("inputs")
        models = run.document.texts("model_inputs")
        new = [key for key in named if key not in linked]
        wanted = dict.fromkeys(model.model_id for model in message.models)
        new_models = [model_id for model_id in wanted if model_id not in models]
        return {
            "inputs": {
                key: run_children.input_text(named[key], position)
                for position, key in enumerate(new, start=len(linked))
            },
            "model_inputs": {
                model_id: str(position)
                for position, model_id in enumerate(new_models, start=len(models))
            },
        }, ()

    run_writes.write(run, link)
    datasets.add_contexts(
        experiment_id,
        [
            (reference.name, reference.digest, dict(reference.tags).get(DATASET_CONTEXT_TAG))
            for reference in named.values()
        ],
    )
    return {}


def log_outputs(message: m.LogOutputs, request: Request) -> dict[str, Any]:
    """Links the models that the run made. A model already linked keeps its step, so a retry changes
    nothing."""
    run = runs.load(message.run_id, request.workspace)

    def link(run: StoredRun) -> tuple[dict[str, dict[str, str]], tuple[()]]:
        linked = run.document.texts("model_outputs")
        steps: dict[str, int] = {}
        for output in message.models:
            if output.model_id not in linked:
                steps.setdefault(output.model_id, output.step)
        return {
            "model_outputs": {
                model_id: json.dumps({"model_id": model_id, "step": step, "at": position})
                for position, (model_id, step) in enumerate(steps.items(), start=len(linked))
            }
        }, ()

    run_writes.write(run, link)
    return {}
