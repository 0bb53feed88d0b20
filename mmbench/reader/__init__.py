"""Read strangers' tables: a file or a data frame becomes features, labels and notes about faults.

| module | content |
| --- | --- |
| `keys` | the options for reading a table, `FileOptions` |
| `file_text`, `text_tables`, `formats` | from bytes to cells: text, CSV and ARFF, other formats |
| `table_columns` | the chain of steps that decides how a column is read, and `TableColumns` |
| `user_table` | features, labels, groups and warnings: `read_table` |
| `advice` | names of cells and options in messages |

The package knows neither data sets nor configurations; `mmbench.datasets` and the commands use it.
"""
