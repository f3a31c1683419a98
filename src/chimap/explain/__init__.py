"""Explanations of predictions: contributions of bins, important bins, and the landmarks behind a prediction."""
