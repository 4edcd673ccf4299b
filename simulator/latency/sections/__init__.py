"""What a report shows of rounds."""
