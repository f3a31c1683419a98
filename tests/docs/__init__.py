"""The pages of docs/ and the examples."""
