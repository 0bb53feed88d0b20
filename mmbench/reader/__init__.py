"""Read strangers' tables: a file or a data frame becomes features, labels and notes about faults.

Options (`keys`) and bytes become cells (`file_text`, `text_tables`, `formats`), columns
(`table_columns`), and features, labels, groups and warnings (`user_table`). Each message is one
line, and names the row and column of a cell (`advice`). The package knows neither data sets nor
configurations.
"""
