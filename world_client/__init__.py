"""The thin client that trainers plug in; httpx and pydantic, nothing else."""
