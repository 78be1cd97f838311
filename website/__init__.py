"""Make the site of the documentation (`make docs-site`), and the pages that are made from code (`make docs`).

Nothing of it is installed with the package. The pages in `docs/` are the sources: they are read on a code host as they
are, and `mkdocs.yml` gives them a navigation.
"""
