"""Layer by layer: where do two networks part, and why?"""
