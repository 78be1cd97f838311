"""Views of the state for fronts, tools and consoles. They hide how the state is kept."""
