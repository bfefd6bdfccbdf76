"""Text encoders: one protocol, several runtimes, never a silent fallback between them."""
