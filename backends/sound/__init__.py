"""Libraries of sound: they read, resample and transform."""
