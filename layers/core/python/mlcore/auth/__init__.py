"""Authorization as pure functions: permission levels, requirements of operations, and whether
grants meet them.
"""
