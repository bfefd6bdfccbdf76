"""The pages a person looks at."""
