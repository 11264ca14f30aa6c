"""Types and names of files, as MLflow's server sends them."""

from __future__ import annotations

import pytest

from mlcore.artifacts.file_headers import attachment, content_type


@pytest.mark.parametrize(
    ("name", "kind"),
    [("a.txt", "text/plain"), ("MLmodel", "text/plain"), ("a.json", "text/plain"),
     ("a.png", "image/png"), ("a.html", "text/html"), ("a.pkl", "application/octet-stream"),
     ("a", "application/octet-stream"), (".gitignore", "application/octet-stream"),
     ("a.svg", "image/svg+xml"), ("a.b.yaml", "text/plain"), ("txt", "text/plain"),
     ("a.pdf", "application/pdf")],
)  # fmt: skip
def test_content_type(name: str, kind: str) -> None:
    assert content_type(name) == kind


@pytest.mark.parametrize(
    ("name", "header"),
    [("a.txt", "attachment; filename=a.txt"), ("a b.txt", 'attachment; filename="a b.txt"'),
     ('a"b', 'attachment; filename="a\\"b"'),
     ("é.txt", "attachment; filename=e.txt; filename*=UTF-8''%C3%A9.txt"),
     ("日本", "attachment; filename=download; filename*=UTF-8''%E6%97%A5%E6%9C%AC")],
)  # fmt: skip
def test_attachment(name: str, header: str) -> None:
    assert attachment(name) == header
