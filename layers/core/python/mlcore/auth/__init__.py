"""Rules of authorization, without access to the table or the network: permission levels,
requirements of operations, whether grants meet them, and scopes of API keys. Also the forms of
passwords' hashes, API keys, OpenID Connect claims and issuers' addresses.
"""
