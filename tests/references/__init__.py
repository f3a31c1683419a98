"""Methods of the papers that only tests compare with."""
