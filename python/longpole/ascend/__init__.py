"""Profiles of Ascend devices on disk: folders, databases, and text files next to a timeline.

`layout` finds the parts of a folder, `database` converts a database to the timeline of the text
export, `tables` reads the text files by column names.
"""
