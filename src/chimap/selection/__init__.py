"""Rules that choose a setting (strength, components, candidates), and the result that all of them return."""
