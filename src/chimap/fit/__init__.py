"""A fit from beginning to end: settings, plan of memory, passes, solution, checkpoint."""
