"""Huawei Ascend: pyACL, DVPP and models compiled by ATC."""
