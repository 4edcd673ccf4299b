"""Tencent ncnn."""
