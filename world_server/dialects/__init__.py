"""One file a family of request and answer shapes."""
