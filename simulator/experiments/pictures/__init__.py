"""What a report shows of the samples of a pair: pictures and sounds."""
