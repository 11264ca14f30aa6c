"""Which RPC needs which permission; loaded only where authentication is on."""
