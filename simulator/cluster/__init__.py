"""The executor that runs samples in the processes of a Ray cluster."""
