"""Calls language models at their providers (OpenAI, Anthropic, Bedrock …): the wire format of each
provider, and the HTTP transport.

Callers pass and get chats in the form of OpenAI's API for every provider; each provider's module
converts them to and from its protocol. Does not use the table, and no error contains a credential.
"""
