"""The route of the Lambda function ``agent_tools``: a server of the Model Context Protocol, with
which agents read what is stored here."""

from __future__ import annotations

from agent_tools import mcp_protocol
from agent_tools.json_rpc import parse
from mlcore.http import PlainRoute, lambda_handler

RPCS = ()
PLAIN_ROUTES = (
    # The tools only read. They send requests to the API with the caller's login.
    PlainRoute(
        "POST",
        "/mcp",
        parse,
        mcp_protocol.answer,
        "shared_rules.anybody",
        reads=True,
        since="",
        cost=0,
    ),
)

handler = lambda_handler(RPCS, PLAIN_ROUTES)
