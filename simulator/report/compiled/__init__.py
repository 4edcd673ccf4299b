"""Templates as jinja2 compiles them."""
