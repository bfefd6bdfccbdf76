"""Types, identity, storage, indexes and search of a world, shared by builder and server."""
