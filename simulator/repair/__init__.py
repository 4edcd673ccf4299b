"""``simulate repair``: the cheapest stack that passes, of what a device can do."""
