"""The machinery that every protocol front shares: budgets of memory, bounds on connections, work on threads."""
