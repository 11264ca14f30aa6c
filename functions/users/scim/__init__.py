"""SCIM 2.0 (RFC 7643, RFC 7644): a company's directory, such as Entra ID or Okta, creates, changes
and deactivates users, and puts them into groups."""
