"""OpenID Connect: configuration and keys of issuers (the services where people log in), their
tokens, and encryption of cookies. Its library is in the layer ``tokens``, so only functions that
have that layer may import this package.
"""
