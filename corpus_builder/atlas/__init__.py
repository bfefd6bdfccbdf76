"""A seeded, fictional, interlinked encyclopaedia: the world used in demos and tests."""
