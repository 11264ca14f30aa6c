"""No path of a request leads out of its workspace's files."""

from __future__ import annotations

import contextlib
from urllib.parse import quote, unquote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mlcore.artifacts import exact_path, locate, safe_path
from mlcore.artifacts.paths import key_in_workspace, names_file
from mlcore.errors import InvalidParameterValue

# Pieces that tricks are made of, each possibly percent-encoded a few times.
PIECES = st.sampled_from(
    ["..", ".", "/", "\\", "a", "file:", "C:", "\x00", "#", "?", "%", "~", ":", "é", " ", "\n", ";"]
)


@st.composite
def tricks(draw: st.DrawFn) -> str:
    text = ""
    for piece in draw(st.lists(PIECES, max_size=8)):
        for _ in range(draw(st.integers(0, 3))):
            piece = quote(piece, safe="") if piece != "." else piece.replace(".", "%2e")  # noqa: PLW2901
        text += piece
    return text


@given(tricks() | st.text(max_size=30))
@example("a/%252e%252e/b")
@example(";/")
@example("./C:/x")
@example("%2e%2e%2f%2e%2e%2fetc/passwd")
def test_what_is_accepted_stays_inside(path: str) -> None:
    try:
        safe = safe_path(path)
    except InvalidParameterValue:
        return
    assert safe == "" or not {"", ".", ".."} & set(safe.split("/"))
    assert not set(safe) & {"\\", "\x00", "#"}
    assert not safe.startswith("/")
    assert safe_path(safe) == safe


@pytest.mark.parametrize(
    "path",
    ["..", "a/../b", "/etc/passwd", "%2Fetc", "a%2F..%2Fb", "%252e%252e/a", "a\\b", "a%5Cb", "C:/x",
     "c:\\x", "file:///etc/passwd", "FILE:/etc", "file:a", "a%00b", "\x00", "a#b", "//host/a",
     "a" * 256, "/".join("a" * 200 for _ in range(6)), "%" + "25" * 12 + "2e", "\ud800", "http://[a"],
)  # fmt: skip
def test_refused(path: str) -> None:
    with pytest.raises(InvalidParameterValue, match="Invalid path"):
        safe_path(path)


@pytest.mark.parametrize(
    ("path", "safe"),
    [("", ""), (".", ""), ("a/b.txt", "a/b.txt"), ("a//b/./c/", "a/b/c"), ("100%.txt", "100%.txt"),
     ("a%20b", "a b"), ("a\nb", "ab"), ("a\x07b", "a%07b"), ("a?b", "a?b"), ("...", "..."),
     ("é.png", "é.png"), ("a:b", "a:b"), ("a..b", "a..b"), (";/", "")],
)  # fmt: skip
def test_accepted(path: str, safe: str) -> None:
    assert safe_path(path) == safe


def passed_on(path: str, *, keeps_percent: bool) -> str:
    """The path of a request as a function gets it: decoded once, or all but ``%25``."""
    if not keeps_percent:
        return unquote(path)
    return "%25".join(unquote(part) for part in path.split("%25"))


NAMES = st.text(
    st.one_of(st.sampled_from("%25?+ éa/.;&=~\n\x07\x7f#\\:日"), st.characters(codec="utf-8")),
    min_size=1,
    max_size=12,
)


@given(NAMES, st.integers(1, 2), st.booleans())
@example("what?.txt", 1, True)
@example("100%.txt", 1, True)
@example("what%3F.txt", 1, False)
@example("a+b c é.txt", 1, False)
@example("a%20b", 1, False)
@example("a\nb", 1, False)
@example("a;", 1, False)
def test_no_name_is_written_as_another(name: str, encodings: int, keeps_percent: bool) -> None:
    """Whoever encodes a name once finds it under that name, or is refused; encoding it once too
    often is no way to another name either. Whatever API Gateway makes of "%25"."""
    path = name
    for _ in range(encodings):
        path = quote(path)
    sent = passed_on(path, keeps_percent=keeps_percent)
    try:
        written = exact_path(sent)
    except InvalidParameterValue:
        return
    meant = unquote(path)
    assert written == "/".join(part for part in meant.split("/") if part not in ("", "."))
    assert safe_path(sent) == safe_path(written) == written


@pytest.mark.parametrize("keeps_percent", [True, False])
@pytest.mark.parametrize(
    "name", ["what?.txt", "a b.txt", "a+b.txt", "é.png", "日本.txt", "a&b=c;d.txt", "~a'b(c).txt"]
)
def test_names_that_survive(name: str, keeps_percent: bool) -> None:
    sent = passed_on(quote(name), keeps_percent=keeps_percent)
    assert exact_path(sent) == safe_path(sent) == name


def test_a_percent_sign_survives_or_is_refused() -> None:
    assert exact_path(passed_on(quote("100%.txt"), keeps_percent=False)) == "100%.txt"
    with pytest.raises(InvalidParameterValue, match="Rename the file"):
        exact_path(passed_on(quote("100%.txt"), keeps_percent=True))


@pytest.mark.parametrize("path", ["", "a/", "a/%2f", "a/#", "a/?", "a/;", "a/\t", "a/%09", "/"])
def test_no_name_at_the_end(path: str) -> None:
    named = False
    with contextlib.suppress(InvalidParameterValue):
        named = names_file(path)
    assert not named
    assert names_file("a/b")


@pytest.mark.parametrize(
    ("path", "workspace", "key"),
    [("1/a", "default", "1/a"), ("", "default", ""), ("1/a", "team", "workspaces/team/1/a"),
     ("", "team", "workspaces/team"), ("workspaces/team/1", "team", "workspaces/team/1"),
     ("Workspaces/team/1", "team", "workspaces/team/1"),
     ("workspaces/default/a", "default", "workspaces/default/a")],
)  # fmt: skip
def test_a_workspace_has_its_own_files(path: str, workspace: str, key: str) -> None:
    assert key_in_workspace(path, workspace) == key


@pytest.mark.parametrize(
    "path",
    ["workspaces", "workspaces/team", "workspaces/other/1", "Workspaces", "WORKSPACES/other/1"],
)
@pytest.mark.parametrize("workspace", ["default", "third"])
def test_files_of_other_workspaces_are_out_of_reach(path: str, workspace: str) -> None:
    with pytest.raises(InvalidParameterValue):
        key_in_workspace(path, workspace)


@pytest.mark.parametrize(
    "path", [".internal", ".internal/spans/1", ".Internal/spans/1", ".INTERNAL"]
)
def test_what_the_product_keeps_is_out_of_reach(path: str) -> None:
    with pytest.raises(InvalidParameterValue):
        key_in_workspace(path, "default")


@pytest.mark.parametrize(
    ("location", "key"),
    [("mlflow-artifacts:/1/r/artifacts", "1/r/artifacts/p"), ("mlflow-artifacts:/", "p"),
     ("mlflow-artifacts://host:80/1", "1/p"), ("s3://own/1", "1/p"), ("s3://own", "p"),
     ("http://h/x/api/2.0/mlflow-artifacts/artifacts/1/2", "1/2/p")],
)  # fmt: skip
def test_locations(monkeypatch: pytest.MonkeyPatch, location: str, key: str) -> None:
    monkeypatch.setenv("ARTIFACT_BUCKET", "own")
    assert locate(location, "default", "p") == key


@pytest.mark.parametrize(
    "location",
    ["s3://other/1", "file:///etc", "/etc", "etc", "gs://b/1", "http://host/etc", "dbfs:/1",
     "s3://own/workspaces/team/1", "s3://own/../x", "s3://own/.internal/spans", ""],
)  # fmt: skip
def test_other_locations(monkeypatch: pytest.MonkeyPatch, location: str) -> None:
    monkeypatch.setenv("ARTIFACT_BUCKET", "own")
    with pytest.raises(InvalidParameterValue):
        locate(location, "default", "p")
