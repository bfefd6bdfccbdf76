"""Where captures come from; one file a kind of input."""
