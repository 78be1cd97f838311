"""Wire protocols, each in a room of its own. They import nothing of the rest."""
