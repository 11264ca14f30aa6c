"""Links datasets and logged models to a run as its inputs and outputs."""

from __future__ import annotations

import json
from typing import Any

from mlcore import reserved_tags
from mlcore.http import Request
from mlcore.limits.run_datasets import check_log_inputs
from mlcore.repos.runs.core import datasets, run_writes, runs
from mlcore.repos.runs.core import run_maps as run_children
from mlcore.repos.runs.core.runs import StoredRun
from runs import messages as m


def log_inputs(message: m.LogInputs, request: Request) -> dict[str, Any]:
    """Links datasets and models to the run as inputs. An existing link stays unchanged, with its
    tags."""
    inputs = check_log_inputs(message.run_id, message.datasets)
    run = runs.load(message.run_id, request.workspace)
    runs.check_active(run)
    references = {
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
        new = [key for key in references if key not in linked]
        model_ids = dict.fromkeys(model.model_id for model in message.models)
        new_models = [model_id for model_id in model_ids if model_id not in models]
        return {
            "inputs": {
                key: run_children.input_text(references[key], position)
                for position, key in enumerate(new, start=len(linked))
            },
            "model_inputs": {
                model_id: str(position)
                for position, model_id in enumerate(new_models, start=len(models))
            },
        }, ()

    linked_before = run_writes.write(run, link).document.texts("inputs")
    # An existing link keeps its context. It is stored once more here, because an interrupted
    # request may have written the link only.
    kept = {key: linked_before[key] for key in references.keys() & linked_before.keys()}
    added = [reference for key, reference in references.items() if key not in kept]
    datasets.add_contexts(
        experiment_id,
        [
            (
                reference.name,
                reference.digest,
                dict(reference.tags).get(reserved_tags.DATASET_CONTEXT),
            )
            for reference in (*run_children.dataset_inputs(kept), *added)
        ],
    )
    return {}


def log_outputs(message: m.LogOutputs, request: Request) -> dict[str, Any]:
    """Links the models that the run made as outputs. A model already linked keeps its step, so a
    retry changes nothing."""
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
