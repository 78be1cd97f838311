"""Who may do what, and who somebody is: the authorizer of access rules, and what fronts and doors share of logins."""
