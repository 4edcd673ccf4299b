"""Evidence bundles: what a backend did on somebody's device, checked and compared here."""
