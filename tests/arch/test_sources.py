"""Files are short, named by nouns, and leave keys to one of them."""

from __future__ import annotations

import re

from tests.arch import project

LINES = 400
BANNED = {"utils", "util", "helpers", "helper", "manager", "misc", "common"}
KEY = re.compile(r"(?:^|#)(?:[A-Z][A-Z_]*|[A-Z]|m|p)#|^(?:E|M|WS|U)#META$|^RUN#REF$")


def _name(path: object) -> str:
    return str(path).removeprefix(f"{project.ROOT}/")


def test_files_are_short() -> None:
    too_long = {
        _name(path): lines
        for path in project.sources(*project.SOURCE_FOLDERS)
        if (lines := len(path.read_text().splitlines())) >= LINES
    }
    assert too_long == {}


def test_files_are_named_by_nouns() -> None:
    assert [
        _name(path)
        for path in project.tracked()
        if BANNED & set(re.split(r"[/_.-]", _name(path).lower()))
    ] == []


def test_no_test_file_imports_another() -> None:
    """What tests share is in modules of its own, so each test file can be read and run alone."""
    imports = re.compile(
        r"^from (?:tests\S*|\.+\S*?)(?:\.?\btest_| import .*\btest_)", re.MULTILINE
    )
    assert [
        _name(path) for path in project.sources("tests") if imports.search(path.read_text())
    ] == []


def test_a_name_that_mlflow_reserves_is_spelled_in_one_module() -> None:
    modules: dict[str, set[str]] = {}
    for path in project.sources("layers", "functions", "local", "operate"):
        for _, text in project.literals(path):
            if re.fullmatch(r"mlflow(\.[A-Za-z]\w*)+", text):
                modules.setdefault(text, set()).add(_name(path))
    assert "mlflow.runName" in modules
    assert {name: where for name, where in modules.items() if len(where) > 1} == {}


def test_only_keys_spells_keys() -> None:
    spelled = {
        path: [f"{_name(path)}:{line}: {text}" for line, text in items]
        for path in project.sources("layers", "functions", "local", "operate")
        if (items := [item for item in project.literals(path) if KEY.search(item[1])])
    }
    keys = {path for path in spelled if path.is_relative_to(project.LAYER / "db/keys")}
    assert keys
    assert [text for path in spelled.keys() - keys for text in spelled[path]] == []


def test_every_module_says_what_it_owns() -> None:
    assert [
        _name(path)
        for path in project.sources("layers", "functions", "local", "operate")
        if path.stat().st_size and not path.read_text().startswith('"""')
    ] == []
