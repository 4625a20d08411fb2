"""The book: brings its pages up to date and renders them."""
