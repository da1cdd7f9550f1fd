"""Rows of any table: types of columns, `where` and `sort`, statistics of samples."""
