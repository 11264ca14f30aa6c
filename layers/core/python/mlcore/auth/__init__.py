"""Who may do what: levels, requirements and how grants answer them; reads no table."""
