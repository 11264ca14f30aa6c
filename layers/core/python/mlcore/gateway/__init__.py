"""Calls of language models through the AI gateway: which model an endpoint means, with which
credentials, what comes next when one fails."""
