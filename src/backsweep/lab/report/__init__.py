"""The report: figures, tables and one page of HTML, from records alone."""
