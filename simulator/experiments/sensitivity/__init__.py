"""``simulate sensitivity``: which layers of an INT8 stack to keep in FP32."""
