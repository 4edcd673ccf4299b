"""Rockchip RKNN."""
