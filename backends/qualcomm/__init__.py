"""Qualcomm QNN."""
