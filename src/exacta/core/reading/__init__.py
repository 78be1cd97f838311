"""What fronts, tools and consoles read of the state: views that they print, and that hide how the state is kept."""
