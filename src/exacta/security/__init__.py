"""The authorizer of access rules, and what fronts and doors share of logins."""
