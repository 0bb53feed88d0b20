"""Read strangers' tables: a file or a data frame becomes features, labels and notes about faults.

    keys                              options for reading a table, `FileOptions`
    file_text, text_tables, formats   from bytes to cells: text, CSV and ARFF, other formats
    table_columns                     the steps that decide how a column is read, `TableColumns`
    user_table                        features, labels, groups and warnings: `read_table`
    advice                            names of cells and options in messages

Each message is one line, and names the row and column of a cell. The package knows neither data
sets nor configurations.
"""
