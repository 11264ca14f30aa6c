"""Calls language models at their providers: the wire format of each provider, and the HTTP
transport.

Chats have the form of OpenAI's API for every provider, and are converted to the provider's
protocol. Does not use the table, and no error contains a credential.
"""
