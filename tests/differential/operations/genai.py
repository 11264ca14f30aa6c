# Much is given wrongly on purpose.
# mypy: disable-error-code="arg-type, assignment, dict-item, abstract"
"""What ``mlflow.genai`` does: prompts, scorers, datasets, label schemas and review queues."""

from __future__ import annotations

from typing import Any

import mlflow
import mlflow.genai
from mlflow import MlflowClient
from mlflow.genai import datasets, label_schemas
from mlflow.genai.label_schemas import (
    InputCategorical,
    InputNumeric,
    InputPassFail,
    InputText,
    InputTextList,
)
from mlflow.genai.scorers import ScorerSamplingConfig, scorer

from .record import Record

UNKNOWN = "f" * 32
TEXT = "Say {{what}} in {{ style }}: é☃"
CHAT = [{"role": "system", "content": "Be {{how}}"}, {"role": "user", "content": "{{question}}"}]
PROMPT_FILTERS = (
    *("name LIKE '{}%'", "name = '{}-1'", "name ILIKE '{}%' AND tags.team = 'a'", "name != 'x'"),
    *("experiment_id = '0'", "experiment_id = 'x'", "version = 1", "foo", "tags.team LIKE 'a%'"),
)
DATASET_FILTERS = (
    *("name LIKE '{}%'", "name = '{} 1'", "tags.k = 'v'", "created_time > 0", "created_by = 'x'"),
    *("name IN ('{} 1')", "version = 1", "foo = 'x'", "name = 1", "last_updated_by LIKE 'x%'"),
    *("tags.k != 'v'", "name ILIKE '{}%' AND tags.k = 'v'", "experiment_id = '1'", "name"),
)
DATASET_ORDERS = ("name", "name DESC", "created_time", "last_update_time DESC", "start time", "foo")
RECORDS = (
    [{"inputs": {"q": "one"}, "expectations": {"answer": 1}}],
    [{"inputs": {"q": "one"}, "expectations": {"answer": 2, "more": [1]}, "tags": {"t": "v"}}],
    [{"inputs": {"q": f"{number}"}} for number in range(5)],
    [{"inputs": {"é": {"deep": [1, None, True]}}, "outputs": {"a": "b"}}],
    [{"inputs": {}}],
    [{"expectations": {"a": 1}}],
    [{"inputs": "text"}],
    [],
    [{"inputs": {"messages": [{"role": "user", "content": "hi"}]}, "source": {"x": "y"}}],
)


def prompts(record: Record, client: MlflowClient, name: str) -> None:
    do, first = record.do, f"{name}-1"
    do("register", client.register_prompt, first, TEXT, "first", {"author": "Ann"})
    do("register again", client.register_prompt, first, TEXT + ".", "second")
    do("register chat", client.register_prompt, f"{name}-chat", CHAT, tags={"team": "a"})
    form = {"type": "object", "properties": {"a": {"type": "string"}}}
    do("register format", client.register_prompt, first, "{{x}}", response_format=form)
    config = {"provider": "openai", "model_name": "gpt", "temperature": 0.5}
    do("register config", client.register_prompt, first, "{{x}}", model_config=config)
    for bad in ("a/b", "", "x" * 300, "a b", "a:b", "é"):
        do(f"register {bad[:4]}", client.register_prompt, f"{bad}", TEXT)
    do("register empty", client.register_prompt, f"{name}-empty", "")
    do("create_prompt", client.create_prompt, f"{name}-2", "described", {"team": "b"})
    do("create_prompt again", client.create_prompt, f"{name}-2")
    do("create_prompt_version", client.create_prompt_version, f"{name}-2", TEXT, "d", {"k": "v"})
    do("create_prompt_version no", client.create_prompt_version, f"{name}-9", TEXT)
    do("model of the name", client.create_registered_model, first)
    for prompt_name in (first, f"{name}-2", f"{name}-9"):
        do("get_prompt", client.get_prompt, prompt_name)
    for number in (1, "2", 3, 99, "x", 0):
        do(f"get_prompt_version {number}", client.get_prompt_version, first, number)
        do(f"load {number}", client.load_prompt, first, number)
    for uri in (
        "prompts:/{}/1",
        "prompts:/{}@none",
        "prompts:/{}@latest",
        "prompts:/{}",
        "x:/{}/1",
    ):
        do(f"load {uri}", client.load_prompt, uri.format(first))
    do("load allowed", client.load_prompt, f"{name}-9", allow_missing=True)
    do("format", _formatted, client, first)
    for alias, number in (
        ("production", 1),
        ("production", 2),
        ("v1", 1),
        ("latest", 1),
        ("a", 99),
    ):
        do(f"alias {alias} {number}", client.set_prompt_alias, first, alias, number)
    for alias in ("production", "none", "latest"):
        do(f"by alias {alias}", client.get_prompt_version_by_alias, first, alias)
    do("get_prompt aliases", client.get_prompt, first)
    for alias in ("production", "production", "none"):
        do(f"delete alias {alias}", client.delete_prompt_alias, first, alias)
    for key, value in (("team", "a"), ("team", "b"), ("mlflow.prompt.is_prompt", "x"), ("", "v")):
        do(f"set_prompt_tag {key}", client.set_prompt_tag, first, key, value)
        do(f"set version tag {key}", client.set_prompt_version_tag, first, "1", key, value)
    for key in ("team", "team", "missing"):
        do(f"delete_prompt_tag {key}", client.delete_prompt_tag, first, key)
        do(f"delete version tag {key}", client.delete_prompt_version_tag, first, "1", key)
    do("get_prompt_tags", mlflow.genai.get_prompt_tags, first)
    do("set config", mlflow.genai.set_prompt_model_config, first, 1, config)
    do("get config", client.get_prompt_version, first, 1)
    do("delete config", mlflow.genai.delete_prompt_model_config, first, 1)
    _find_prompts(record, client, name, first)
    _link_prompts(record, client, first)
    do("delete version", client.delete_prompt_version, first, "1")
    do("delete version again", client.delete_prompt_version, first, "1")
    do("delete prompt with versions", client.delete_prompt, first)
    do("delete prompt", client.delete_prompt, f"{name}-chat")
    do("delete prompt missing", client.delete_prompt, f"{name}-9")


def _find_prompts(record: Record, client: MlflowClient, name: str, first: str) -> None:
    do = record.do
    for text in PROMPT_FILTERS:
        where = text.format(name)
        do(f"search_prompts {text}", client.search_prompts, where)
    for most in (1, 2, 0):
        do(f"search_prompts {most}", client.search_prompts, f"name LIKE '{name}%'", most)
    for order in ("name DESC", "start time"):
        where = {"filter_string": f"name LIKE '{name}%'", "order_by": [order]}
        do(f"search_prompts by {order}", client.search_prompts, **where)
    for prompt_name in (first, f"{name}-9"):
        do("search_prompt_versions", client.search_prompt_versions, prompt_name)
    do("prompts are no models", client.search_registered_models, f"name LIKE '{name}%'")
    do("prompts are no versions", client.search_model_versions, f"name LIKE '{name}%'")


def _link_prompts(record: Record, client: MlflowClient, first: str) -> None:
    do = record.do
    run_id = client.create_run("0").info.run_id
    do("link to run", client.link_prompt_version_to_run, run_id, f"prompts:/{first}/1")
    do("link twice", client.link_prompt_version_to_run, run_id, f"prompts:/{first}/1")
    do("link missing", client.link_prompt_version_to_run, run_id, f"prompts:/{first}/99")
    do("linked", lambda: client.get_run(run_id).data.tags.get("mlflow.linkedPrompts"))
    do("logged", client.list_logged_prompts, run_id)
    do("detach", client.detach_prompt_from_run, run_id, f"prompts:/{first}/1")


def _formatted(client: MlflowClient, name: str) -> Any:
    return client.load_prompt(name, 1).format(what="hi", style="verse")


def scorers(record: Record, client: MlflowClient, experiment: str) -> None:
    do = record.do
    judge = mlflow.genai.make_judge(
        name="judge", instructions="Is {{ outputs }} good for {{ inputs }}?", model="openai:/gpt"
    )

    @scorer
    def short(outputs: str) -> bool:
        return len(outputs) < 9

    where = {"experiment_id": experiment}
    for named in ("", "second"):
        do(f"register {named}", judge.register, **where, name=named or None)
        do(f"register again {named}", judge.register, **where, name=named or None)
    do("register own", short.register, **where)
    do("register nowhere", judge.register, experiment_id="98765432")
    for each in (experiment, "98765432", "x"):
        do("list_scorers", _names, mlflow.genai.list_scorers, experiment_id=each)
    for scorer_name in ("judge", "second", "missing", ""):
        for version in (None, 1, 2, 9):
            named = {**where, "name": scorer_name, "version": version}
            do(f"get_scorer {scorer_name} {version}", _told, **named)
    store = client._tracking_client.store
    do("versions", _versions, store, experiment, "judge")
    do("versions missing", _versions, store, experiment, "missing")
    for name, version in (("judge", 1), ("judge", 1), ("second", "all"), ("judge", None), ("x", 1)):
        named = {**where, "name": name, "version": version}
        do(f"delete_scorer {name} {version}", mlflow.genai.delete_scorer, **named)
    do("list after", _names, mlflow.genai.list_scorers, **where)
    do("start", judge.start, **where, sampling_config=ScorerSamplingConfig(sample_rate=0.5))


def _names(call: Any, **named: Any) -> list[Any]:
    return [
        (registered.name, getattr(registered, "instructions", None)) for registered in call(**named)
    ]


def _told(**named: Any) -> Any:
    registered = mlflow.genai.get_scorer(**named)
    return {"name": registered.name, "instructions": getattr(registered, "instructions", None)}


def _versions(store: Any, experiment: str, name: str) -> Any:
    return [
        (scorer_version[0].scorer_name, scorer_version[1])
        for scorer_version in store.list_scorer_versions(experiment, name)
    ]


def evaluation(record: Record, client: MlflowClient, name: str, experiments: list[str]) -> None:
    do = record.do
    made = []
    for number in range(3):
        tags = {"k": "v"} if number % 2 else {"n": number}
        dataset = do(
            "create_dataset", client.create_dataset, f"{name} {number}", experiments[number], tags
        )
        made.append(dataset.dataset_id)
    do("create_dataset of two", client.create_dataset, f"{name} two", experiments[:2])
    do("create_dataset of none", client.create_dataset, f"{name} none")
    for bad in ("", None, "x" * 600):
        do(f"create_dataset {str(bad)[:4]}", client.create_dataset, bad)
    do("create_dataset nowhere", client.create_dataset, f"{name} x", "98765432")
    do("create_dataset again", client.create_dataset, f"{name} 1", experiments[3])
    for dataset_id in (made[0], "d-" + UNKNOWN, "", "x"):
        do("get_dataset", client.get_dataset, dataset_id)
    for number, rows in enumerate(RECORDS):
        do(f"merge {number}", lambda rows=rows: client.get_dataset(made[0]).merge_records(rows))
        do(f"records {number}", lambda: _sorted(client.get_dataset(made[0]).records))
        do(f"frame {number}", lambda: sorted(client.get_dataset(made[0]).to_df().columns))
        do(f"told {number}", lambda: _about(client.get_dataset(made[0])))
    do("genai merge", lambda: datasets.get_dataset(dataset_id=made[1]).merge_records(RECORDS[2]))
    do("genai records", lambda: _sorted(datasets.get_dataset(dataset_id=made[1])._dataset.records))
    for tags in ({"a": "b"}, {"a": None}, {"c": 5}, {}, {"k" * 300: "v"}):
        do(f"set_dataset_tags {str(tags)[:9]}", client.set_dataset_tags, made[0], tags)
    for key in ("a", "missing", "c"):
        do(f"delete_dataset_tag {key}", client.delete_dataset_tag, made[0], key)
    do("set_dataset_tags missing", client.set_dataset_tags, "d-" + UNKNOWN, {"a": "b"})
    for ids in (experiments[:2], [], ["98765432"]):
        do("add", client.add_dataset_to_experiments, made[0], ids)
    do("remove", client.remove_dataset_from_experiments, made[0], experiments[:1])
    do("remove again", client.remove_dataset_from_experiments, made[0], experiments[:1])
    do("get after", client.get_dataset, made[0])
    _find_datasets(record, client, name, experiments[:3])
    do("delete_dataset", client.delete_dataset, made[2])
    do("delete_dataset again", client.delete_dataset, made[2])
    do("get deleted", client.get_dataset, made[2])


def _find_datasets(record: Record, client: MlflowClient, name: str, experiments: list[str]) -> None:
    do = record.do
    for text in DATASET_FILTERS:
        where = {"filter_string": text.format(name)}
        do(f"search_datasets {text}", client.search_datasets, experiments, **where)
    for order in DATASET_ORDERS:
        where = {"order_by": [order]}
        do(f"search_datasets by {order}", client.search_datasets, experiments, **where)
    for most in (1, 2, 0, -1, 1001):
        do(f"search_datasets {most}", client.search_datasets, experiments, max_results=most)
    for ids in ([], ["98765432"], experiments[0]):
        do("search_datasets in", client.search_datasets, ids, f"name LIKE '{name}%'")
    do(
        "genai search",
        lambda: [dataset.name for dataset in datasets.search_datasets(experiments[1])],
    )


def _sorted(records: Any) -> Any:
    rows = [record.to_dict() if hasattr(record, "to_dict") else record for record in records or []]
    return sorted(rows, key=lambda row: repr(row.get("inputs")))


def _about(dataset: Any) -> Any:
    return {"schema": dataset.schema, "profile": dataset.profile, "tags": dataset.tags}


def reviews(record: Record, client: MlflowClient, experiment: str, trace_ids: list[str]) -> None:
    do = record.do
    inputs = (
        *(InputPassFail("good", "bad"), InputCategorical(["a", "b"]), InputNumeric(0, 5)),
        *(InputText(), InputText(200), InputTextList(9, 2), InputCategorical(["a"], True)),
    )
    made = []
    for number, input_ in enumerate(inputs):
        kind: Any = "expectation" if number % 2 else "feedback"
        named = {"type": kind, "input": input_, "instruction": "look", "experiment_id": experiment}
        schema = do("create_label_schema", label_schemas.create_label_schema, f"s{number}", **named)
        made.append(schema.schema_id if schema else "ls-" + UNKNOWN)
    do("create again", label_schemas.create_label_schema, "s0", **named)
    do("create over", label_schemas.create_label_schema, "s0", **named, overwrite=True)
    do("create empty", label_schemas.create_label_schema, "", **named)
    nowhere = {**named, "experiment_id": "98765432"}
    do("create nowhere", label_schemas.create_label_schema, "x", **nowhere)
    where = {"experiment_id": experiment}
    for most in (100, 2, 0):
        do(f"list {most}", label_schemas.list_label_schemas, experiment, max_results=most)
    for schema_id in (made[1], UNKNOWN):
        do("get", label_schemas.get_label_schema, schema_id=schema_id, **where)
    for name in ("s1", "missing", ""):
        do(f"get {name}", label_schemas.get_label_schema, name, **where)
    do("update", label_schemas.update_label_schema, made[1], instruction="again", name="s1 new")
    do("update taken", label_schemas.update_label_schema, made[1], name="s2")
    do("update input", label_schemas.update_label_schema, made[2], input=InputText(7))
    store = client._tracking_client.store
    queues = []
    for number in range(2):
        named = {"name": f"q{number}", "queue_type": "CUSTOM", "users": ["ann"]}
        queue = do(f"create_review_queue {number}", store.create_review_queue, experiment, **named)
        queues.append(getattr(queue, "queue_id", "rq-" + UNKNOWN))
    do("create_review_queue again", store.create_review_queue, experiment, **named)
    do("user queue", store.get_or_create_user_queue, experiment, "bob")
    do("user queue again", store.get_or_create_user_queue, experiment, "bob")
    do("list queues", store.list_review_queues, experiment)
    for queue_id in (queues[0], UNKNOWN):
        do("get queue", store.get_review_queue, queue_id)
        do("add", store.add_items_to_review_queue, queue_id, "TRACE", trace_ids[:3])
        do("add again", store.add_items_to_review_queue, queue_id, "TRACE", trace_ids[:2])
        do("items", store.list_review_queue_items, queue_id)
        done = (queue_id, "TRACE", trace_ids[0], "COMPLETE")
        do("done", store.set_review_queue_item_status, *done, completed_by="ann")
        do("remove", store.remove_items_from_review_queue, queue_id, "TRACE", trace_ids[1:2])
        do("items after", store.list_review_queue_items, queue_id)
    for name in ("q1", "missing"):
        do(f"queue {name}", store.get_review_queue_by_name, experiment, name)
    do("delete queue", store.delete_review_queue, queues[1])
    do("delete queue again", store.delete_review_queue, queues[1])
    for schema_id in (made[3], made[3]):
        do("delete schema", label_schemas.delete_label_schema, schema_id=schema_id)
    do("list after", label_schemas.list_label_schemas, experiment)
    issue = do("create_issue", store.create_issue, experiment, "late", "it comes late")
    issue_id = getattr(issue, "issue_id", "iss-" + UNKNOWN)
    for target_id in (issue_id, "iss-" + UNKNOWN):
        do("get_issue", store.get_issue, target_id)
        do("update_issue", store.update_issue, target_id, name="later")
    for text in (None, "status = 'pending'", "foo = 'x'", "status > 'x'"):
        do(f"search_issues {text}", store.search_issues, experiment, text)
    if trace_ids:
        named = {"trace_id": trace_ids[0], "issue_id": issue_id, "issue_name": "late"}
        do("log_issue", mlflow.log_issue, **named)
