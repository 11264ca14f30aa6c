"""Optimization of prompts by somebody who lacks a right, or who spells requests strangely."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mlcore.auth.permissions import Grant, scorer_pattern
from mlcore.entities.evaluation.jobs import PENDING, Job
from mlcore.ids import now_ms
from mlcore.repos.evaluation import jobs
from tests.contract import stored_job
from tests.contract.conftest import Store
from tests.contract.evaluation_calls import new_dataset, sent, upsert
from tests.contract.judges_world import builtin, judge
from tests.contract.optimization_members import Member, needed
from tests.contract.optimization_world import GOOD, OptimizationWorld, ask

Json = dict[str, Any]


@pytest.fixture
def world(store: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> OptimizationWorld:
    return OptimizationWorld(store.api, monkeypatch, tmp_path)


def test_who_has_every_right_optimizes(
    world: OptimizationWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    member = Member("member", monkeypatch, *needed(world).values())
    status, body = member.ask("POST", "", world.body("METAPROMPT"))
    assert status == 200, body
    assert world.work() == []
    [job] = jobs.of_workspace("default")
    assert (job.status, job.creator) == ("SUCCEEDED", "member")
    assert member.ask("GET", f"/{job.job_id}")[1]["job"]["optimized_prompt_uri"] == "prompts:/qa/2"


@pytest.mark.parametrize("lacking", ["experiment", "prompt", "endpoint"])
def test_each_right_is_needed(
    world: OptimizationWorld, monkeypatch: pytest.MonkeyPatch, lacking: str
) -> None:
    """To read is not enough, and somebody without a right learns nothing of what exists."""
    given = needed(world)
    lacked = given.pop(lacking)
    member = Member("member", monkeypatch, *given.values())
    refused = member.ask("POST", "", world.body())
    assert refused[0] == 403
    reader = Grant(lacked.resource_type, lacked.resource_pattern, "READ")
    reading = Member("reader", monkeypatch, *given.values(), reader)
    assert reading.ask("POST", "", world.body()) == refused
    missing = world.body()
    if lacking == "experiment":
        missing["experiment_id"] = "987654"
    elif lacking == "prompt":
        missing["source_prompt_uri"] = "prompts:/nothing/1"
    else:
        missing["config"]["optimizer_config_json"] = '{"reflection_model": "gateway:/nothing"}'
    assert member.ask("POST", "", missing) == refused
    assert world.queue.waiting == []
    assert list(jobs.of_workspace("default")) == []


def test_a_missing_prompt_is_named_to_those_who_could_read_it(
    world: OptimizationWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To anybody else it is refused like one that exists. Prompts and registered models share
    names, so a reader of prompts alone could otherwise find names of models."""
    hidden = new_dataset(experiment_ids=[world.api.new_experiment("hidden")])
    given = needed(world)
    del given["prompt"]
    readable = [Grant(kind, "*", "READ") for kind in ("prompt", "registered_model")]
    missing = {**world.body(), "source_prompt_uri": "prompts:/nothing/1"}
    reader = Member("reader", monkeypatch, *given.values(), *readable)
    status, body = reader.ask("POST", "", missing)
    assert (status, body["error_code"]) == (404, "RESOURCE_DOES_NOT_EXIST")
    refused = reader.ask("POST", "", world.body())
    assert refused[0] == 403
    missing["config"] = {**missing["config"], "dataset_id": hidden}
    assert reader.ask("POST", "", missing) == refused
    missing["config"]["dataset_id"] = "d-0"
    assert reader.ask("POST", "", missing)[0] == 404
    for number, grant in enumerate(readable):
        half = Member(f"half {number}", monkeypatch, *given.values(), grant)
        assert half.ask("POST", "", missing) == refused
    del given["experiment"]
    stranger = Member("stranger", monkeypatch, *given.values(), *readable)
    assert stranger.ask("POST", "", missing) == refused
    assert list(jobs.of_workspace("default")) == []


def test_endpoints_of_scorers_and_of_the_rewriting_model(
    world: OptimizationWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.contract import gateway_world  # noqa: PLC0415 -- the world has made its own

    gateway_world.endpoint("other", [gateway_world.model("m2", "openai", "http://127.0.0.1:9/v1")])
    asks_other = judge("Is {{ outputs }} fine?", model="gateway:/other")
    fields = {"experiment_id": world.experiment, "name": "quality"}
    registration = {**fields, "serialized_scorer": json.dumps(asks_other)}
    sent("POST", "scorers/register", registration)
    member = Member("member", monkeypatch, *needed(world).values())
    for changes in (
        {"scorers": ["quality"]},
        {"optimizer_config_json": '{"reflection_model": "gateway:/other"}'},
        {"optimizer_config_json": '{"reflection_model": "gateway:///other"}'},
    ):
        body = world.body("METAPROMPT")
        body["config"] |= changes
        assert member.ask("POST", "", body)[0] == 403
    version = world.prompt("qa", GOOD, {"provider": "gateway", "model_name": "other"})
    uris = [f"prompts:/qa/{version}", "prompts:/qa@latest", "qa", f"prompts:///qa/00{version}"]
    for uri in uris:
        assert member.ask("POST", "", {**world.body(), "source_prompt_uri": uri})[0] == 403
    assert world.queue.waiting == []


def test_a_dataset_of_others(world: OptimizationWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    hidden = world.api.new_experiment("hidden")
    dataset = new_dataset(experiment_ids=[world.experiment, hidden])
    assert upsert(dataset, {"inputs": {"question": "secret"}}).status == 200
    member = Member("member", monkeypatch, *needed(world).values())
    answers = []
    for dataset_id in (dataset, "d-0"):
        body = world.body()
        body["config"]["dataset_id"] = dataset_id
        answers.append(member.ask("POST", "", body))
        body["config"]["datasetId"] = body["config"].pop("dataset_id")
        answers.append(member.ask("POST", "", body))
    assert [status for status, _ in answers] == [403] * 4
    assert len({json.dumps(body) for _, body in answers}) == 1


@pytest.mark.parametrize(
    "denied", [("run", "*"), ("scorer_version", "*"), ("scorer", ""), ("prompt_version", "*")]
)
def test_what_is_denied(
    world: OptimizationWorld, monkeypatch: pytest.MonkeyPatch, denied: tuple[str, str]
) -> None:
    kind, pattern = denied
    pattern = pattern or scorer_pattern(world.experiment, "Equivalence")
    member = Member("member", monkeypatch, *needed(world).values(), Grant(kind, pattern, "DENY"))
    assert member.ask("POST", "", world.body())[0] == 403


def test_jobs_of_others_and_jobs_that_do_not_exist(
    world: OptimizationWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = world.create(world.body())
    other_kind = jobs.new_id()
    now = now_ms()
    params = {"experiment_id": world.experiment}
    stored_job.store(Job(other_kind, "default", "invoke_scorer", params, PENDING, now, now))
    stranger = Member("stranger", monkeypatch)
    reader = Member("reader", monkeypatch, Grant("experiment", world.experiment, "READ"))
    editor = Member("editor", monkeypatch, Grant("experiment", world.experiment, "EDIT"))
    ids = (job["job_id"], other_kind, jobs.new_id(), job["job_id"].upper(), "%2e%2e", "search ")
    for method, path in (("GET", ""), ("POST", "/cancel"), ("DELETE", "")):
        answers = [stranger.ask(method, f"/{job_id}{path}") for job_id in ids]
        assert {status for status, _ in answers} == {403}
        assert len({json.dumps(body) for _, body in answers}) == 1
    assert reader.ask("GET", f"/{job['job_id']}")[0] == 200
    assert reader.ask("GET", f"/{other_kind}")[0] == 403
    assert reader.ask("POST", f"/{job['job_id']}/cancel")[0] == 403
    assert editor.ask("DELETE", f"/{job['job_id']}")[0] == 403
    assert ask("GET", f"/{job['job_id']}").body["job"]["state"] == {"status": "JOB_STATUS_PENDING"}
    assert editor.ask("POST", f"/{job['job_id']}/cancel")[0] == 200
    wanted = {"experiment_id": world.experiment}
    assert reader.ask("POST", "/search", wanted)[1]["jobs"][0]["job_id"] == job["job_id"]
    refused = stranger.ask("POST", "/search", wanted)
    assert refused[0] == 403
    assert stranger.ask("POST", "/search", {"experiment_id": "987654"}) == refused
    assert stranger.ask("POST", "/search", {"experimentId": world.experiment}) == refused


HUGE = "x" * 200_000
REFUSED: list[tuple[Json, str]] = [
    ({"source_prompt_uri": None}, "source_prompt_uri"),
    ({"source_prompt_uri": ""}, "source_prompt_uri"),
    ({"source_prompt_uri": ["prompts:/qa/1"]}, "source_prompt_uri"),
    ({"source_prompt_uri": "prompts:/"}, "Not a proper prompts:/ URI"),
    ({"source_prompt_uri": "prompts:/qa"}, "Not a proper prompts:/ URI"),
    ({"source_prompt_uri": "prompts:/qa/1/2"}, "Not a proper prompts:/ URI"),
    ({"source_prompt_uri": "prompts:/qa/one"}, "Not a proper prompts:/ URI"),
    ({"source_prompt_uri": "prompts:/qa/" + "9" * 40}, "Not a proper prompts:/ URI"),
    ({"source_prompt_uri": "prompts:/qa/99"}, "not found"),
    ({"source_prompt_uri": "prompts:/qa@none"}, "not found"),
    ({"source_prompt_uri": "prompts:/none/1"}, "not found"),
    ({"experiment_id": ""}, "experiment_id is required for optimization job"),
    ({"experiment_id": "  "}, "experiment_id is required for optimization job"),
    ({"experiment_id": None}, "experiment_id is required for optimization job"),
    ({"experiment_id": ["1"]}, "experiment_id"),
    ({"experiment_id": "987654"}, "No Experiment with id=987654"),
    ({"config": None}, "config"),
    ({"config": []}, "config"),
    ({"config": {}}, "optimizer_type is required"),
    ({"tags": "a"}, "tags"),
    ({"tags": [{"key": ["a"]}]}, "tags"),
    ({"config.optimizer_type": "OPTIMIZER_TYPE_UNSPECIFIED"}, "optimizer_type is required"),
    ({"config.optimizer_type": "gepa"}, "optimizer_type"),
    ({"config.optimizer_type": 99}, "optimizer_type"),
    ({"config.dataset_id": "d-0"}, "Evaluation dataset with id 'd-0' not found"),
    ({"config.dataset_id": ""}, "requires `train_data`"),
    ({"config.scorers": []}, "at least one scorer"),
    ({"config.scorers": [None]}, "scorers"),
    ({"config.scorers": "Safety"}, "scorers"),
    ({"config.scorers": ["nothing"]}, "Scorer 'nothing' not found"),
    ({"config.scorers": [""]}, "Scorer '' not found"),
    ({"config.scorers": ["RetrievalRelevance"]}, "cannot judge the answer to a prompt"),
    ({"config.scorers": ["Guidelines"]}, "Scorer 'Guidelines' not found"),
    ({"config.scorers": ["of_traces"]}, "needs a trace"),
    ({"config.scorers": ["elsewhere"]}, "no gateway endpoint"),
    ({"config.scorers": ["talks"]}, "judges conversations"),
    ({"config.scorers": [f"s{number}" for number in range(21)]}, "At most 20 scorers"),
    ({"config.optimizer_config_json": ""}, "'reflection_model' must be specified"),
    ({"config.optimizer_config_json": "{"}, "Invalid JSON in optimizer_config_json"),
    ({"config.optimizer_config_json": "[]"}, "must be a JSON object"),
    ({"config.optimizer_config_json": "null"}, "must be a JSON object"),
    ({"config.optimizer_config_json": "[" * 50_000}, "Invalid JSON in optimizer_config_json"),
    ({"config.optimizer_config_json": '{"a": NaN}'}, "NaN is no number of JSON"),
    ({"config.optimizer_config_json": '{"a": "\\ud800"}'}, "half a character"),
    ({"config.optimizer_config_json": {"reflection_model": "gateway:/e"}}, "optimizer_config_json"),
    ({"config.optimizer_config_json": f'{{"a": "{HUGE}"}}'}, "at most 100000 characters"),
    ({"model": "openai:/gpt-4o"}, "cannot be reached by this server"),
    ({"model": "gateway:/"}, "cannot be reached by this server"),
    ({"model": ["gateway:/e"]}, "cannot be reached by this server"),
    ({"model": "gateway:/nothing"}, "GatewayEndpoint not found (name='nothing')"),
    ({"option.max_metric_calls": 0}, "max_metric_calls must be an integer from 1 to 10000"),
    ({"option.max_metric_calls": 10_001}, "max_metric_calls must be an integer"),
    ({"option.max_metric_calls": True}, "max_metric_calls must be an integer"),
    ({"option.max_metric_calls": "5"}, "max_metric_calls must be an integer"),
    ({"option.gepa_kwargs": []}, "gepa_kwargs must be a JSON object"),
    ({"option.gepa_kwargs": {"run_dir": "/tmp"}}, "does not support: ['run_dir']"),
    ({"option.gepa_kwargs": {"seed": 1.5}}, "seed must be an integer"),
    ({"option.gepa_kwargs": {"skip_perfect_score": 1}}, "skip_perfect_score must be"),
    ({"option.gepa_kwargs": {"perfect_score": "1"}}, "perfect_score must be a number"),
    ({"option.gepa_kwargs": {"acceptance_criterion": ["x"]}}, "acceptance_criterion must be one"),
]


@pytest.mark.parametrize(("changes", "message"), REFUSED)
def test_strange_requests_are_refused_and_leave_nothing(
    world: OptimizationWorld, changes: Json, message: str
) -> None:
    for name, scorer in (
        ("of_traces", judge("Is {{ trace }} fine?", "of_traces")),
        ("elsewhere", judge("Is {{ outputs }} fine?", "elsewhere", model="openai:/gpt-4o")),
        ("talks", builtin("UserFrustration", "talks")),
    ):
        fields = {"experiment_id": world.experiment, "name": name}
        sent("POST", "scorers/register", {**fields, "serialized_scorer": json.dumps(scorer)})
    body = world.body()
    for name, value in changes.items():
        section, _, field = name.partition(".")
        if section == "option":
            body["config"] |= world.body(**{field: value})["config"]
        elif section == "model":
            body["config"] |= world.body(reflection_model=value)["config"]
        elif field:
            body[section][field] = value
        else:
            body[section] = value
    answer = ask("POST", "", body)
    assert 400 <= answer.status < 500, answer
    assert message in answer.body["message"], answer
    assert len(answer.body["message"]) < 1000
    assert list(jobs.of_workspace("default")) == []
    assert world.queue.waiting == []
    assert world.api.post("runs/search", experiment_ids=[world.experiment]) == {}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lm_kwargs": []}, "`lm_kwargs` must be a dictionary"),
        ({"lm_kwargs": {"messages": []}}, "the parameter 'messages'"),
        ({"lm_kwargs": {"stream": True}}, "the parameter 'stream'"),
        ({"lm_kwargs": {"temperature": "hot"}}, "must be a number"),
        ({"guidelines": {"a": 1}}, "guidelines must be a string"),
        ({"guidelines": "x" * 20_001}, "guidelines must be a string of at most"),
        ({"reflection_model": None}, "for the MetaPrompt optimizer"),
    ],
)
def test_strange_options_of_metaprompt(
    world: OptimizationWorld, options: Json, message: str
) -> None:
    answer = ask("POST", "", world.body("METAPROMPT", **options))
    assert answer.status == 400
    assert message in answer.body["message"]


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (None, "doesn't have a model configuration"),
        ([], "doesn't have a model configuration"),
        ({"provider": "gateway"}, "doesn't have a model configuration"),
        ({"provider": "openai", "model_name": "gpt-4o"}, "'openai/gpt-4o'"),
        ({"provider": ["gateway"], "model_name": "e"}, "cannot be reached"),
        ({"provider": "gateway", "model_name": "nothing"}, "GatewayEndpoint not found"),
    ],
)
def test_models_of_prompts(world: OptimizationWorld, config: Any, message: str) -> None:
    number = world.prompt("qa", GOOD, config)
    answer = ask("POST", "", {**world.body(), "source_prompt_uri": f"prompts:/qa/{number}"})
    assert 400 <= answer.status < 500
    assert message in answer.body["message"]


def test_a_model_may_be_named_in_two_ways(world: OptimizationWorld) -> None:
    number = world.prompt("qa", GOOD, {"provider": "openai", "model_name": "gateway:/e"})
    world.create({**world.body(), "source_prompt_uri": f"prompts:/qa/{number}"})


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        ("{% for x in y %}{{ question }}{% endfor %}", "text", "template of Jinja2"),
        ('[{"role": "user"}]', "chat", "is no chat prompt"),
        ("[]", "chat", "is no chat prompt"),
        ("[" * 30_000, "chat", "is no chat prompt"),
    ],
)
def test_templates_that_cannot_be_filled(
    world: OptimizationWorld, text: str, kind: str, message: str
) -> None:
    number = world.prompt("qa", text, _mlflow_prompt_type=kind)
    answer = ask("POST", "", {**world.body(), "source_prompt_uri": f"prompts:/qa/{number}"})
    assert answer.status == 400
    assert message in answer.body["message"]


def test_both_spellings_of_a_field(world: OptimizationWorld) -> None:
    body = world.body()
    camel = {
        "experimentId": body["experiment_id"],
        "sourcePromptUri": body["source_prompt_uri"],
        "config": {
            "optimizerType": body["config"]["optimizer_type"],
            "datasetId": body["config"]["dataset_id"],
            "scorers": body["config"]["scorers"],
            "optimizerConfigJson": body["config"]["optimizer_config_json"],
        },
    }
    answer = ask("POST", "", camel)
    assert answer.status == 400, "as on MLflow's server, a required field counts in one spelling"
    answer = ask("POST", "", {**camel, "source_prompt_uri": "prompts:/other/1"})
    assert answer.status == 400
    del camel["sourcePromptUri"]
    world.create({**camel, "source_prompt_uri": body["source_prompt_uri"]})


@pytest.mark.parametrize(
    ("records", "message"),
    [
        ([{"inputs": {"other": "x"}}], "lack variables of the prompt: ['question']"),
        ([{"inputs": {}}], "Record 0 is missing required 'inputs' field or it is empty"),
    ],
)
def test_records_that_do_not_fit(
    world: OptimizationWorld, records: list[Json], message: str
) -> None:
    dataset = new_dataset(experiment_ids=[world.experiment])
    assert upsert(dataset, *records).status == 200
    body = world.body()
    body["config"]["dataset_id"] = dataset
    job = world.optimized(body)
    assert job["state"]["status"] == "JOB_STATUS_FAILED"
    assert message in job["state"]["error_message"]
    assert world.model.asked == []


def test_scorers_whose_answers_are_no_numbers(world: OptimizationWorld) -> None:
    words = judge("Which colour has {{ outputs }}?", "colour")
    fields = {"experiment_id": world.experiment, "name": "colour"}
    sent("POST", "scorers/register", {**fields, "serialized_scorer": json.dumps(words)})
    say = world.model.said
    world.model.said = lambda chat: (
        {"result": "blue", "rationale": "Seen."}
        if "colour" in chat["messages"][0]["content"]
        else say(chat)
    )
    body = world.body()
    body["config"]["scorers"] = ["colour"]
    job = world.optimized(body)
    assert job["state"]["error_message"].startswith(
        "Scorers [colour (type: str)] return non-numerical values"
    )
