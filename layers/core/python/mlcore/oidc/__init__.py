"""OpenID Connect: documents and keys of issuers, tokens, and sealed cookies. Its library is in the
layer ``tokens``, so only functions that have that layer may import this package."""
