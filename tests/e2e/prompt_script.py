"""What users of prompts do, in words that every version from 2.22 to 3.18 knows, and what the
newer ones do besides.

    python prompt_script.py TRACKING_URI NAME

Prints ``ok <client version> <prompt name>``; any wrong answer ends it with an AssertionError.
"""

from __future__ import annotations

import sys
import warnings

import mlflow
from mlflow import MlflowClient
from mlflow.exceptions import MlflowException

warnings.simplefilter("ignore", FutureWarning)  # prompts are experimental, and have moved
VERSION = tuple(int(number) for number in mlflow.__version__.split("."))
MISSING = {"RESOURCE_DOES_NOT_EXIST", "INTERNAL_ERROR"}
"""The second where the client rewrites the message, up to 3.1."""
TEXT = "Say {{what}} in {{style}}: é☃\n"


def refused(codes: set[str], call, *arguments, **more) -> None:
    error_code = "nothing"
    try:
        call(*arguments, **more)
    except MlflowException as error:
        error_code = error.error_code
    assert error_code in codes, (call, arguments, error_code)


def texts(client: MlflowClient, name: str) -> None:
    first = client.register_prompt(name, TEXT, commit_message="first", tags={"author": "Ann"})
    assert (first.name, int(first.version), first.template) == (name, 1, TEXT), first
    assert first.variables == {"what", "style"}
    second = client.register_prompt(name, TEXT + "Shortly.", tags={"team": "words"})
    assert int(second.version) == 2
    for loaded in (client.load_prompt(name, 1), client.load_prompt(f"prompts:/{name}/1")):
        assert (loaded.template, loaded.commit_message) == (TEXT, "first"), loaded
        assert loaded.format(what="hi", style="verse") == "Say hi in verse: é☃\n"
    assert client.load_prompt(name, 2).template == TEXT + "Shortly."
    refused(MISSING, client.load_prompt, f"prompts:/{name}/3")
    refused({"INVALID_PARAMETER_VALUE"}, client.register_prompt, "no/slashes", TEXT)

    client.set_prompt_alias(name, "production", 1)
    assert int(client.load_prompt(f"prompts:/{name}@production").version) == 1
    client.set_prompt_alias(name, "production", 2)
    if VERSION < (3, 6):  # later clients remember for a minute what an alias named
        assert int(client.load_prompt(f"prompts:/{name}@production").version) == 2
    client.delete_prompt_alias(name, "production")
    if VERSION < (3, 6):
        gone = {*MISSING, "INVALID_PARAMETER_VALUE"}
        refused(gone, client.load_prompt, f"prompts:/{name}@production")


def models_stay_apart(client: MlflowClient, name: str) -> None:
    """One name-space, two kinds of things."""
    client.create_registered_model(f"{name}-model")
    taken = {"INVALID_PARAMETER_VALUE", "INTERNAL_ERROR"}
    refused(taken, client.register_prompt, f"{name}-model", TEXT)
    refused({"RESOURCE_ALREADY_EXISTS"}, client.create_registered_model, name)
    registered_models = client.search_registered_models(f"name LIKE '{name}%'")
    assert [registered_model.name for registered_model in registered_models] == [f"{name}-model"], (
        registered_models
    )
    assert not client.search_model_versions(f"name = '{name}'")
    client.delete_registered_model(f"{name}-model")


def runs(client: MlflowClient, name: str) -> None:
    experiment = mlflow.set_experiment(f"{name} runs")
    run_id = client.create_run(experiment.experiment_id).info.run_id
    link = getattr(client, "log_prompt" if VERSION < (3,) else "link_prompt_version_to_run")
    link(run_id, f"prompts:/{name}/1")
    if VERSION < (3,):  # later clients write another tag than they read
        [linked] = client.list_logged_prompts(run_id)
        assert int(linked.version) == 1
    if VERSION >= (3,):
        linked = client.get_run(run_id).data.tags["mlflow.linkedPrompts"]
        assert name in linked, linked


def tags(client: MlflowClient, name: str) -> None:
    prompt = client.get_prompt(name)
    assert {"author": "Ann", "team": "words"}.items() <= prompt.tags.items(), prompt.tags
    client.set_prompt_tag(name, "reviewed", "yes")
    client.set_prompt_tag(name, "gone", "1")
    client.delete_prompt_tag(name, "gone")
    if VERSION >= (3, 6):  # earlier ones cannot
        client.set_prompt_version_tag(name, "1", "note", "x")
        client.set_prompt_version_tag(name, "1", "gone", "x")
        client.delete_prompt_version_tag(name, "1", "gone")
        version = client.get_prompt_version(name, "1").tags
        assert version["note"] == "x"
        assert "gone" not in version
    shown = client.get_prompt(name).tags
    assert shown["reviewed"] == "yes"
    assert "gone" not in shown
    prompts = client.search_prompts(f"name = '{name}' AND tags.reviewed = 'yes'")
    assert [prompt.name for prompt in prompts] == [name], prompts
    assert not client.search_prompts(f"name LIKE '{name}%' AND tags.reviewed = 'no'")


def chat(client: MlflowClient, name: str) -> None:
    """Messages, a format of the answer, and the model to ask, which may change."""
    messages = [
        {"role": "system", "content": "You are {{style}}."},
        {"role": "user", "content": "{{question}}"},
    ]
    answer = {"type": "object", "properties": {"answer": {"type": "string"}}}
    config = {"model_name": "gpt", "temperature": 0.5, "max_tokens": 100}
    made = client.register_prompt(
        name, messages, response_format=answer, model_config=config, commit_message="chat"
    )
    loaded = client.get_prompt_version(name, str(made.version))
    assert loaded.template == messages, loaded
    assert loaded.response_format == answer
    assert config.items() <= loaded.model_config.items(), loaded.model_config
    formatted = loaded.format(style="calm", question="why?")
    assert [message["content"] for message in formatted] == ["You are calm.", "why?"]
    mlflow.genai.set_prompt_model_config(name, made.version, {"model_name": "other"})
    changed = client.get_prompt_version(name, str(made.version)).model_config
    assert changed == {"model_name": "other"}, changed
    mlflow.genai.delete_prompt_model_config(name, made.version)
    assert not client.get_prompt_version(name, str(made.version)).model_config
    prompt_versions = client.search_prompt_versions(name)
    assert [int(prompt_version.version) for prompt_version in prompt_versions] == [
        int(made.version)
    ], prompt_versions


def ends(client: MlflowClient, name: str) -> None:
    if VERSION < (3,):
        client.delete_prompt(name, 1)
        refused(MISSING, client.load_prompt, name, 1)
        return
    client.delete_prompt_version(name, "1")
    assert client.load_prompt(name, 1, allow_missing=True) is None
    client.delete_prompt_version(name, "2")
    client.delete_prompt(name)
    assert not client.search_prompts(f"name = '{name}'")


def main(uri: str, name: str) -> None:
    mlflow.set_tracking_uri(uri)
    client = MlflowClient(uri)
    texts(client, name)
    models_stay_apart(client, name)
    runs(client, name)
    if VERSION >= (3,):
        tags(client, name)
    if VERSION >= (3, 8):
        chat(client, f"{name}-chat")
    ends(client, name)
    print("ok", mlflow.__version__, name)  # noqa: T201


if __name__ == "__main__":
    main(*sys.argv[1:])
