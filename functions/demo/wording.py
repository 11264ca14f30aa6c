"""Prompts of the demo's assistant, with versions and aliases."""

from __future__ import annotations

from typing import Final

from demo.caller import Caller

_IS_PROMPT: Final = {"key": "mlflow.prompt.is_prompt", "value": "true"}
_TEXT: Final = "mlflow.prompt.text"
_EXPERIMENTS: Final = "_mlflow_experiment_ids"

PROMPTS: Final = {
    "mlflow-demo-answer": (
        "Answer the question of a customer of a bicycle shop.\n\nQuestion: {{question}}",
        "You work in a bicycle shop. Answer in at most three sentences, and only from what is "
        "given.\n\nGiven: {{passages}}\n\nQuestion: {{question}}",
        "You work in a bicycle shop. Answer in at most three sentences, and only from what is "
        "given; if it does not say, say so.\n\nGiven: {{passages}}\n\nQuestion: {{question}}",
    ),
    "mlflow-demo-summary": (
        "Sum up the conversation in one sentence:\n\n{{conversation}}",
        "Sum up in one sentence what the customer wants, and whether they got it:\n\n"
        "{{conversation}}",
    ),
}
"""The texts of the versions by the prompt's name."""


def make(caller: Caller, experiment_id: str) -> None:
    for name, texts in PROMPTS.items():
        tags = [_IS_PROMPT, {"key": _EXPERIMENTS, "value": f",{experiment_id},"}]
        caller.make("/2.0/mlflow/registered-models/create", name=name, tags=tags)
        found = caller.get("/2.0/mlflow/model-versions/search", filter=f"name = '{name}'")
        for text in texts[len(found.get("model_versions", ())) :]:
            caller.post(
                "/2.0/mlflow/model-versions/create",
                name=name,
                source="dummy-source",
                tags=[_IS_PROMPT, {"key": _TEXT, "value": text}],
            )
        caller.post(
            "/2.0/mlflow/registered-models/alias",
            name=name,
            alias="production",
            version=str(len(texts)),
        )


def remove(caller: Caller, _experiment_id: str) -> None:
    for name in PROMPTS:
        caller.remove("DELETE", "/2.0/mlflow/registered-models/delete", name=name)
