"""The rules of consumer groups: offsets, members of both protocols, deletion, lag."""
