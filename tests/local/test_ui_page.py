"""The page that the runner serves offers no assistant, and the package's own page stays."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from local.http import ui_page


def test_the_page_is_amended_once_and_its_other_names_keep_the_old(tmp_path: Path) -> None:
    page, linked = tmp_path / "index.html", tmp_path / "of another installation"
    linked.write_text("<html><head><title>MLflow</title></head><body></body></html>")
    os.link(linked, page)
    for _ in range(2):
        subprocess.run([sys.executable, ui_page.__file__, str(page)], check=True)
    head = f"<title>MLflow</title>{ui_page.ADDED}</head>"
    assert page.read_text() == f"<html><head>{head}<body></body></html>"
    assert ui_page.ADDED not in linked.read_text()


def test_what_is_no_page_is_refused() -> None:
    with pytest.raises(ValueError, match="no head"):
        ui_page.with_head_elements("Not Found")
