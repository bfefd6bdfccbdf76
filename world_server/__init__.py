"""Serves worlds through the dialects that search agents already speak."""
