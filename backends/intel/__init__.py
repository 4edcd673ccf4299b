"""Intel: OpenVINO and NNCF."""
