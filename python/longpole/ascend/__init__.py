"""Profiles of Ascend devices on disk: folders, databases and the text files beside a timeline.

`layout` finds what a folder holds, `database` turns a database into the timeline that the text
export would be, `tables` reads the text files by the names of their columns.
"""
