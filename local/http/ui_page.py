"""Adds to MLflow's page the bar with links to this server's own pages (``dashboards/bar.js``), and
removes from it the assistant, because no server of it exists here, and the message that MLflow
collects usage data, because this server collects none and forwards none.
Why this is here, and when it can go: MLflow's bundle offers its assistant when it is loaded from
localhost, and opens it by itself in a new profile. A script and a style are added to the page that
mark it as opened and hide it, and that mark the message as read and the collection as switched off
(keys of ``localStorage`` and their versions are the bundle's); the bundle stays unchanged. Each can
go when MLflow has a switch for it.
Run as ``python local/http/ui_page.py FILE`` on the page of the mlflow package. Repeating it changes
nothing.
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
    'localStorage.setItem("mlflow.telemetry.info.alert.dismissed_v1", "true");'
    'localStorage.setItem("mlflow.settings.telemetry.enabled_v1", "false");'
    "</script>"
    "<style>"
    # The button at the corner, the panel and the button of a trace; that beside experiments; a tab
    # of pages that have nothing to show yet; the buttons of a trace's drawer, of an evaluation run,
    # of a comparison, and of charts' menus.
    # MLflow's own styles are important, too: three attributes outweigh them.
    ":is("
    '[data-assistant-ui="true"],'
    'div:has(>div[role="button"][tabindex="0"][aria-pressed]),'
    '[role="tab"][id$="-trigger-assistant"],'
    '[data-component-id$=".modal.analyze-trace"],'
    '[data-component-id$=".run-view-evaluations.analyze-button"],'
    '[data-component-id$=".insight.assistant"],'
    '[data-component-id$=".ask-assistant"]'
    ",[a][b][c][d])"
    "{display:none!important}"
    "</style>"
    '<link href="static-files/dashboards/bar.css" rel="stylesheet">'
    '<script defer src="static-files/dashboards/bar.js"></script>'
)


def amended(page: str) -> str:
    """Returns the HTML page with the script and the style added to its head. A page that has them
    already is returned unchanged.

    Raises:
        ValueError: the page has no head.
    """
    if ADDED in page:
        return page
    head, end, rest = page.partition(_HEAD_ENDS)
    if not end:
        raise ValueError("The page has no head.")
    return head + ADDED + end + rest


if __name__ == "__main__":
    file = Path(sys.argv[1])
    page = amended(file.read_text(encoding="utf-8"))
    # The installer links files to its cache and to other installations: theirs stay as they are.
    file.unlink()
    file.write_text(page, encoding="utf-8")
