"""The permissions that each RPC needs; loaded only where authentication is on."""
