"""MLflow's page, as it is served: without its assistant, which has nothing behind it here.

The bundle offers the assistant wherever it is loaded from a server of this machine, and opens it by
itself on a new profile. The page says beforehand that this was done already, and hides the offers;
the bundle stays as it is. Run as ``python local/http/ui_page.py FILE``, once, on the page of the
mlflow package; a second run changes nothing.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

_HEAD_ENDS: Final = "</head>"
ADDED: Final = (
    "<script>"
    'localStorage.setItem("mlflow.assistant.fab.autoOpenedOnFirstLoad_v1", "true");'
    'localStorage.setItem("mlflow.assistant.panelOpen_v1", "false");'
    "</script>"
    "<style>"
    # The button at the corner, the panel and the button of a trace; that beside experiments; a tab
    # of pages that have nothing to show yet.
    '[data-assistant-ui="true"],'
    'div:has(>div[role="button"][tabindex="0"][aria-pressed]),'
    '[role="tab"][id$="-trigger-assistant"]'
    "{display:none!important}"
    "</style>"
)


def without_assistant(page: str) -> str:
    """Raises ValueError: it is no page."""
    if ADDED in page:
        return page
    head, end, rest = page.partition(_HEAD_ENDS)
    if not end:
        raise ValueError("The page has no head.")
    return head + ADDED + end + rest


if __name__ == "__main__":
    file = Path(sys.argv[1])
    page = without_assistant(file.read_text(encoding="utf-8"))
    # The installer links files to its cache and to other installations: theirs stay as they are.
    file.unlink()
    file.write_text(page, encoding="utf-8")
