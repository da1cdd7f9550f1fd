"""Profiles of Ascend devices on disk: folders, databases, and CSV files next to a timeline.

`layout` finds the files of a profile, `database` converts a database to the timeline of the text
export, `tables` reads the CSV files by column name.
"""
