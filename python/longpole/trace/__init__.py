"""A trace and its tables, and what is computed from one trace for several questions."""
