"""One answer for people and programs: blocks of plain rows, and one writer for each format.

`blocks` defines the parts of an answer, `document` the envelope around it. `text`, `markdown`,
`html`, `json` and `csv` write it. None of them needs polars.
"""
