"""The table of patterns is told once, truly, and spelled nowhere else."""

import ast
import re
from pathlib import Path

from hypothesis import example, given
from hypothesis import strategies as st

from mlcore.db import keys
from mlcore.db.keys.pattern import SORT_KEY_BYTES, UPPER_BOUND, Pattern, prefix_range

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)

ROOT = Path(__file__).parents[4]
ALL = {**keys.PATTERNS, **keys.INDEXES}


def table_of_docstring() -> dict[str, tuple[str, str, str]]:
    assert keys.__doc__
    results = {}
    index, pk = "", ""
    for line in keys.__doc__.splitlines():
        if re.match(r"    \S", line):
            index, _, pk = line.strip().rpartition(" ")
        elif re.match(r"        \S", line):
            sk, name = line.split()
            results[name] = (index, pk, sk)
    return results


def test_the_docstring_is_the_table_of_patterns() -> None:
    def row(pattern: Pattern) -> tuple[str, str, str]:
        return (pattern.index, pattern.pk.text, pattern.sk.text)

    assert table_of_docstring() == {name: row(pattern) for name, pattern in ALL.items()}


def test_nobody_else_spells_a_key() -> None:
    beginnings = {
        half.text.split("#", 1)[0] + "#"
        for pattern in ALL.values()
        for half in (pattern.pk, pattern.sk)
        if re.match(r"[A-Z_]+#", half.text)
    }
    spelled = re.compile("|".join(map(re.escape, sorted(beginnings))))
    folder = ROOT / "layers/core/python/mlcore/db/keys"
    for path in [*(ROOT / "layers").rglob("*.py"), *(ROOT / "functions").rglob("*.py")]:
        if folder in path.parents:
            continue
        nodes = list(ast.walk(ast.parse(path.read_text())))
        docstrings = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
        for node in nodes:
            if (
                isinstance(node, ast.Constant)
                and isinstance(node.value, str)
                and id(node) not in docstrings
            ):
                assert not spelled.match(node.value), f"{path}:{node.lineno} spells a key"


@given(TEXTS.filter(bool), TEXTS, TEXTS)
@example("R#1#", UPPER_BOUND * 3, "R#2")
def test_the_sort_keys_with_a_prefix_are_those_that_begin_with_it(
    prefix: str, rest: str, other: str
) -> None:
    low, high = prefix_range(prefix)

    assert len(high.encode()) <= SORT_KEY_BYTES
    for key in (prefix + rest, other):
        between = low.encode() <= key.encode() <= high.encode()
        assert between == key.startswith(prefix)
