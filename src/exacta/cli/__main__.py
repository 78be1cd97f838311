"""`python -m exacta.cli`."""

from exacta.cli import main

main()
