"""The web front: its guard, its connections and their bounds."""
