"""What results say: statistics, verdicts, tables, figures and the page that shows them."""
