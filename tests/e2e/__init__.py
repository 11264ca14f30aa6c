"""The product from outside: real clients of several versions against the local runner."""
