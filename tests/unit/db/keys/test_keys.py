import math
import os
import re
from hashlib import blake2b
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from mlcore.db import keys
from mlcore.db.keys.pattern import KeyTemplate
from tests.unit.db.keys.key_cases import CASES

ALL = {**keys.PATTERNS, **keys.INDEXES}
TEMPLATES = {
    (template.text, limit): template
    for pattern in ALL.values()
    for template, limit in ((pattern.pk, 2048), (pattern.sk, 1024))
}

INTEGERS = {"step", "ts", "time", "version", "number"}
DOUBLES = {"double", "inv_value"}
NASTY = st.text('#$%~! "\0\x1f\x7fab{}|é😀', min_size=1, max_size=12)
SHORT = NASTY | st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
"""Of at most 48 bytes, 36 of which an escape may treble: what is always kept whole."""

LONG = st.builds(
    lambda start, character, count, end: start + character * count + end,
    SHORT,
    st.sampled_from(["a", "#", "$", "é", "漢", "😀", "\0"]),
    st.integers(0, 600),
    SHORT,
)


def values(
    fields: tuple[str, ...], texts: st.SearchStrategy[str]
) -> st.SearchStrategy[tuple[Any, ...]]:
    def strategy(field: str) -> st.SearchStrategy[Any]:
        if field in INTEGERS:
            return st.integers(-(2**63), 2**63 - 1)
        return st.floats() if field in DOUBLES else texts

    return st.tuples(*map(strategy, fields))


def same(first: object, second: object) -> bool:
    """Equal to the last bit: -0.0 is not 0.0, NaN is NaN."""
    return repr(first) == repr(second)


few = settings(max_examples=int(os.environ.get("KEY_EXAMPLES", "4")))
"""Of each of the many templates, most of which have the fields of others: over a thousand of each
property in all."""


@pytest.mark.parametrize("template", TEMPLATES.values(), ids=lambda template: template.text)
class TestEveryTemplate:
    @few
    @given(data=st.data())
    def test_what_is_not_cut_comes_back(self, template: KeyTemplate, data: st.DataObject) -> None:
        given_values = data.draw(values(template.fields, st.text("#$a é", max_size=16) | SHORT))
        built = template.build(*given_values)
        parsed = template.parse(built)
        assert parsed is not None
        assert tuple(parsed) == template.fields
        for field, value in zip(template.fields, given_values, strict=True):
            kept = len(str(value).encode()) <= 21  # an escaped id of 21 bytes has 63
            assert not kept or same(parsed[field], value)

    @few
    @given(data=st.data())
    def test_no_text_makes_a_key_too_long(self, template: KeyTemplate, data: st.DataObject) -> None:
        limit = next(limit for text, limit in TEMPLATES if text == template.text)
        built = template.build(*data.draw(values(template.fields, LONG)))
        assert len(built.encode()) <= limit

    @few
    @given(data=st.data())
    def test_different_values_make_different_keys(
        self, template: KeyTemplate, data: st.DataObject
    ) -> None:
        strategy = values(template.fields, SHORT | LONG | st.sampled_from(["a" * 1500, "a" * 1501]))
        first, second = data.draw(strategy), data.draw(strategy)
        assert (template.build(*first) == template.build(*second)) == same(first, second)

    @few
    @given(data=st.data())
    def test_a_prefix_selects_exactly_what_has_its_fields(
        self, template: KeyTemplate, data: st.DataObject
    ) -> None:
        strategy = values(
            template.fields, st.sampled_from(["a", "a#b", "a$", "a#", "", "a b"]) | LONG
        )
        first, second = data.draw(strategy), data.draw(strategy)
        for count in range(len(template.fields)):
            prefix = template.prefix(*first[:count])
            assert template.build(*first).startswith(prefix)
            selected = template.build(*second).startswith(prefix)
            assert selected == same(first[:count], second[:count])


def test_a_cut_text_keeps_its_beginning_and_is_marked() -> None:
    name = "漢字" * 250
    pk = keys.registered_model("default", name + "x" * 600).pk
    assert pk.startswith("RM#" + name)
    assert re.fullmatch("x+~[0-9a-f]{32}", pk.removeprefix("RM#" + name))


def test_the_longest_names_of_mlflow_are_kept_whole_in_partition_keys() -> None:
    for character in ("a", "#", "漢", "😀"):
        name = character * 500
        assert keys.registered_model("default", name).pk == "RM#" + name
        assert keys.gsi3_experiment(name, "1").pk == "EXPNAME#" + name


def test_a_name_that_looks_like_a_cut_one_is_not_taken_for_it() -> None:
    for build in (keys.run_metric, keys.run_param):
        cut = build("1", "r", "k" * 2000).sk
        impostor = cut.removeprefix("R#r#").split("#", 1)[1]
        assert build("1", "r", impostor).sk != cut


TIME = "00000000000000000005"
LOCAL_CASES = {
    "lsi1_run": (
        keys.lsi1_run("active", 5, "01"),
        keys.lsi1_run_prefix("active"),
        f"ACTIVE#R#{TIME}#nm~",
    ),
    "lsi2_run": (keys.lsi2_run(5, "01"), keys.lsi2_run_prefix(), f"R#{TIME}#nm~"),
    "lsi3_run": (
        keys.lsi3_run("RUNNING", 5, "01"),
        keys.lsi3_run_prefix("RUNNING"),
        f"RUNNING#R#{TIME}#nm~",
    ),
    "lsi4_run": (keys.lsi4_run("a b", "01"), "R#", "R#a$20b#01"),
    "lsi5_run": (
        keys.lsi5_run("m", 0.5, "01"),
        "R#m#",
        "R#m#bfe0000000000000#nm~",
    ),
    "lsi5_run_mark": (
        keys.lsi5_run_mark("01", 7),
        keys.lsi5_run_mark_prefix(),
        "PENDING#R#01#00000000000000000007",
    ),
    "lsi1_trace": (
        keys.lsi1_trace("01", "7"),
        keys.lsi1_trace_prefix(),
        "PENDING#T#01#7",
    ),
    "lsi2_trace": (keys.lsi2_trace(5, "01"), keys.lsi2_trace_prefix(), f"T#{TIME}#nm~"),
    "lsi2_metric_history": (
        keys.lsi2_metric_history("r", "a#", 3, "f", "l", 5, 1.0),
        "MHIST#r#a$23#",
        "MHIST#r#a$23#03#f#l#00000000000000000005#bff0000000000000",
    ),
    "lsi3_trace": (
        keys.lsi3_trace("OK", 5, "01"),
        "OK#T#",
        f"OK#T#{TIME}#nm~",
    ),
    "lsi1_logged_model": (
        keys.lsi1_logged_model("active", 5, "01"),
        keys.lsi1_logged_model_prefix("active"),
        f"ACTIVE#LM#{TIME}#nm~",
    ),
    "lsi4_logged_model": (
        keys.lsi4_logged_model("a#", 5, "01"),
        keys.lsi4_logged_model_prefix("a#"),
        f"LM#a$23#{TIME}#nm~",
    ),
    "lsi5_logged_model": (
        keys.lsi5_logged_model("r", 5, "01"),
        keys.lsi5_logged_model_prefix("r"),
        f"LM#r#{TIME}#nm~",
    ),
    "lsi5_trace": (
        keys.lsi5_trace("s#", 5, "01"),
        keys.lsi5_trace_prefix("s#"),
        f"T#s$23#{TIME}#nm~",
    ),
    "lsi2_evaluation_record": (
        keys.lsi2_evaluation_record(5, 5, "dr-1"),
        keys.lsi2_evaluation_record_prefix(),
        f"RECORD#{TIME}#{TIME}#dr-1",
    ),
    "lsi2_alert": (
        keys.lsi2_alert(5, "team", "al-1"),
        keys.lsi2_alerts_until(5)[0],
        f"ALERT#{TIME}#team#al-1",
    ),
    "lsi2_detection_schedule": (
        keys.lsi2_detection_schedule(5, "team", "7"),
        keys.lsi2_detection_schedules_until(5)[0],
        f"DETECTIONSCHEDULE#{TIME}#team#7",
    ),
    "lsi4_trace": (keys.lsi4_trace("t", "01"), keys.lsi4_trace_prefix(), "T#t#01"),
    "lsi3_model_version": (
        keys.lsi3_model_version("None", 3),
        keys.lsi3_model_version_prefix("None"),
        "None#V#00000000000000000003",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_functions_build_their_pattern(name: str) -> None:
    built, pk, sk = CASES[name]
    assert built == (pk, sk)
    assert ALL[name].parse(pk, sk) is not None
    if name in keys.PATTERNS:
        parsed = keys.parse(pk, sk)
        assert parsed.pattern.name == name


@pytest.mark.parametrize("name", LOCAL_CASES)
def test_functions_of_local_indexes_build_their_pattern(name: str) -> None:
    built, prefix, expected = LOCAL_CASES[name]
    assert built == expected
    assert built.startswith(prefix)
    assert ALL[name].sk.parse(built) is not None


def test_every_pattern_has_a_function() -> None:
    assert {*CASES, *LOCAL_CASES} == set(ALL)


@given(st.data())
def test_an_item_key_is_of_one_pattern_only(data: st.DataObject) -> None:
    pattern = data.draw(st.sampled_from(list(keys.PATTERNS.values())))
    pk = pattern.pk.build(*data.draw(values(pattern.pk.fields, NASTY)))
    sk = pattern.sk.build(*data.draw(values(pattern.sk.fields, NASTY)))
    assert keys.parse(pk, sk).pattern is pattern
    for other in keys.PATTERNS.values():
        if other is not pattern:
            assert other.parse(pk, sk) is None


@pytest.mark.parametrize(
    ("pk", "sk"), [("", ""), ("EXP#1", "X#1"), ("EXP#1", "R"), ("EXP#1", "R#1#NO#2")]
)
def test_a_key_of_no_pattern_is_refused(pk: str, sk: str) -> None:
    with pytest.raises(ValueError, match="no pattern"):
        keys.parse(pk, sk)


def test_fields_are_parsed_to_their_types() -> None:
    fields = keys.parse(*keys.rank_metric("1", "a#b", -math.inf, "r")).fields
    assert fields == {"experiment_id": "1", "key": "a#b", "inv_value": -math.inf, "run_id": "r"}
    assert keys.parse(*keys.model_version("RM#n", 7)).fields == {"model_name": "n", "version": 7}


def test_experiment_of_a_partition() -> None:
    assert keys.experiment_id_of(keys.experiment("a#b").pk) == "a#b"
    with pytest.raises(ValueError, match="experiment"):
        keys.experiment_id_of("RM#x")


NAMES = st.lists(SHORT | LONG, min_size=2, max_size=2)


@given(NAMES, st.sampled_from(["a", "b"]), st.sampled_from(["a", "b"]))
def test_names_have_their_order_in_lsi4(names: list[str], first_id: str, second_id: str) -> None:
    first, second = names
    assume(first[:250] != second[:250] or first == second)
    assume(max(len(name.encode()) for name in names) < 240)
    ordered = keys.lsi4_run(first, first_id) < keys.lsi4_run(second, second_id)
    assert ordered == ((first, first_id) < (second, second_id))


@given(st.tuples(SHORT, SHORT))
def test_values_have_their_order_in_rank_param(texts: tuple[str, str]) -> None:
    first, second = texts
    ordered = keys.rank_param("1", "k", first, "r").sk < keys.rank_param("1", "k", second, "r").sk
    assert ordered == (first < second)


@given(LONG, LONG, LONG)
def test_an_item_of_a_param_leads_to_its_run(key: str, value: str, run_id: str) -> None:
    sk = keys.rank_param("1", key, value, run_id).sk
    assert keys.runs_of_rank_params([sk]) == [keys.run("1", run_id).sk]


TIMES = st.tuples(st.integers(-(2**63), 2**63 - 1), SHORT)


@given(TIMES, TIMES)
def test_local_indexes_read_backwards_are_newest_first_and_ids_ascending(
    first: tuple[int, str], second: tuple[int, str]
) -> None:
    (first_time, first_id), (second_time, second_id) = first, second
    assume(max(len(first_id.encode()), len(second_id.encode())) <= 21)
    before = (-first_time, first_id) < (-second_time, second_id)
    assert (keys.lsi2_run(first_time, first_id) > keys.lsi2_run(second_time, second_id)) == before
    assert (
        keys.lsi1_run("active", first_time, first_id)
        > keys.lsi1_run("active", second_time, second_id)
    ) == before


NUMBERS = st.floats(allow_nan=False)


@given(NUMBERS, NUMBERS, NUMBERS, SHORT)
def test_ranges_hold_what_lies_between(
    first: float, second: float, value: float, run_id: str
) -> None:
    low, high = sorted((first + 0.0, second + 0.0))
    inside = low <= value + 0.0 <= high
    start, end = keys.rank_metric_range("m", high, low)
    assert (start <= keys.rank_metric("1", "m", value + 0.0, run_id).sk <= end) == inside


def test_no_index_key_is_empty_even_without_a_name() -> None:
    assert keys.lsi4_run("", "r") == "R##r"
    assert keys.lsi4_run_name_prefix("") == "R##"


def test_prefixes_of_runs_and_traces() -> None:
    assert keys.run_prefix() == "R#"
    assert keys.run_prefix("r") == "R#r#"
    assert keys.trace_prefix() == "T#"
    assert keys.trace_prefix("t") == "T#t#"
    for kind in ("METRIC", "MHIST", "MBATCH", "MBFILE", "PARAM", "TAG", "INPUT", "LM"):
        assert keys.run_child_prefix("r", kind) == f"R#r#{kind}#"


PREFIXES = {
    keys.experiment_tag_prefix(): "E#TAG#",
    keys.run_metric_batch_prefix("r"): "R#r#MBATCH#",
    keys.run_metric_file_prefix("r"): "R#r#MBFILE#",
    keys.run_metric_history_prefix("r", "a#"): "R#r#MHIST#a$23#",
    keys.dataset_prefix(): "D#",
    keys.trace_tag_prefix("t"): "T#t#TAG#",
    keys.logged_model_param_prefix("m"): "LM#m#PARAM#",
    keys.logged_model_tag_prefix("m"): "LM#m#TAG#",
    keys.logged_model_points_prefix("m"): "LM#m#POINTS#",
    keys.trace_metadata_prefix("t"): "T#t#METADATA#",
    keys.trace_assessment_prefix("t"): "T#t#A#",
    keys.trace_prompt_prefix("t"): "T#t#PROMPT#",
    keys.trace_spans_prefix("t"): "T#t#SPANS",
    keys.trace_link_prefix(): "RUN#TRACE#",
    keys.assessed_trace_prefix(): "RUN#ASSESSED#",
    keys.rank_param_value_prefix("a", "b c"): "RANK#p#a#b$20c#",
    keys.rank_param_begin("a", "b c"): "RANK#p#a#b$20c",
    keys.rank_rows_prefix(): "RANKROWS#",
    keys.rank_segment_prefix(): "RANKSEGMENT#",
    keys.rank_segment_prefix("a b"): "RANKSEGMENT#a b#",
    keys.dataset_links_prefix(): "DLINK#",
    keys.fts_of_type_prefix("word", "a", "run"): "FTS#word#a#run#",
    keys.fts_rev_prefix("run", "r"): "FTS_REV#run#r#",
    keys.model_version_prefix(): "M#V#",
    keys.model_version_tag_prefix(3): "M#V#00000000000000000003#TAG#",
    keys.run_model_version_prefix(): "RUN#MV#",
    keys.model_tag_prefix(): "M#TAG#",
    keys.model_alias_prefix(): "M#ALIAS#",
    keys.config_prefix(): "CFG#",
    keys.webhook_prefix(): "WH#",
    keys.mcp_server_prefix(): "MCPSERVER#",
    keys.mcp_server_version_prefix(): "MCPVERSION#",
    keys.gateway_budget_prefix(): "GWBUDGET#",
    keys.evaluation_dataset_prefix(): "EVALDATASET#",
    keys.evaluation_record_prefix(): "RECORD#",
    keys.scorer_version_prefix(): "SCORER#",
    keys.scorer_version_prefix("a b"): "SCORER#a b#V#",
    keys.online_scorer_prefix(): "ONLINESCORER#",
    keys.online_scorer_prefix("ws"): "ONLINESCORER#ws#",
    keys.online_scorer_prefix("ws", "7"): "ONLINESCORER#ws#7#",
    keys.job_prefix(): "JOB#",
    keys.job_call_prefix(): "JOBCALL#",
    keys.label_schema_prefix(): "LABELSCHEMA#",
    keys.review_queue_prefix(): "REVIEWQUEUE#",
    keys.review_queue_item_prefix("rq"): "REVIEWQUEUEITEM#rq#",
    keys.issue_prefix(): "ISSUE#",
    keys.catalog_generation_prefix(): "CSRC#GENERATION#",
    keys.context_child_prefix(): "CHILD#",
    keys.context_child_prefix("metric"): "CHILD#metric#",
}


def test_prefixes_are_spelled_as_their_patterns() -> None:
    assert list(PREFIXES) == list(PREFIXES.values())


def test_the_place_where_texts_are_cut_never_changes() -> None:
    """Stored items would no longer be found: a change here needs a migration of the table."""
    cut = [
        template.build(
            *(0 if field in INTEGERS | DOUBLES else "k" * 3000 for field in template.fields)
        )
        for template in TEMPLATES.values()
    ]
    lengths = {text: len(built) for (text, _), built in zip(TEMPLATES, cut, strict=True)}
    assert lengths["EXP#<experiment_id>"] == 101
    assert lengths["R#<run_id>#METRIC#<key>"] == 1024
    assert blake2b("\n".join(sorted(cut)).encode(), digest_size=8).hexdigest() == "1d720f404b68611a"
