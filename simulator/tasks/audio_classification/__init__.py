"""Classification of sounds: spoken digits, commands, sources."""
