"""Creates and deletes the demo's prompts, with versions and an alias."""

from __future__ import annotations

from typing import Final

from mlcore import reserved_tags
from mlcore.http.api_client import ApiClient

_IS_PROMPT: Final = {"key": reserved_tags.IS_PROMPT, "value": "true"}
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
"""The templates of each prompt's versions, by the prompt's name."""


def make(client: ApiClient, experiment_id: str) -> None:
    for name, texts in PROMPTS.items():
        tags = [_IS_PROMPT, {"key": _EXPERIMENTS, "value": f",{experiment_id},"}]
        client.create("/2.0/mlflow/registered-models/create", name=name, tags=tags)
        answer = client.get("/2.0/mlflow/model-versions/search", filter=f"name = '{name}'")
        for text in texts[len(answer.get("model_versions", ())) :]:
            client.post(
                "/2.0/mlflow/model-versions/create",
                name=name,
                source="dummy-source",
                tags=[_IS_PROMPT, {"key": reserved_tags.PROMPT_TEXT, "value": text}],
            )
        client.post(
            "/2.0/mlflow/registered-models/alias",
            name=name,
            alias="production",
            version=str(len(texts)),
        )


def remove(client: ApiClient, _experiment_id: str) -> None:
    for name in PROMPTS:
        client.remove("DELETE", "/2.0/mlflow/registered-models/delete", name=name)
