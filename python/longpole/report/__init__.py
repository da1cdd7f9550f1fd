"""One answer for people and programs: blocks of plain rows, and one writer for each format.

`blocks` says what an answer consists of, `document` what stands around it. `text`,
`markdown`, `html`, `json` and `csv` write it. None of them needs polars.
"""
