"""Readers: the text of real tools, turned into the schema of `numalab.runs`.

One format, one module, one test file, one golden folder.
"""
