"""Write every page of the reference that is made from code."""

from website.pages.made import PAGES

for path, content in PAGES.items():
    path.write_text(content(), encoding="utf-8")
