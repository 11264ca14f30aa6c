"""Authorization as pure functions: permission levels, requirements, and how grants meet them."""
