"""Where the images and their labels come from."""
