"""A projection's rows and the truth: compare, confirm, plan, the life of a finding. Pure."""
