"""Shows a frame or a drawing on a page, and gives it as a file."""
