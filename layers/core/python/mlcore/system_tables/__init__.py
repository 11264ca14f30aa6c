"""The system tables: their rows, and how rows are made from the table's items. Imports no table
engine; ``layers/tables`` has the engines that publish and query the tables."""
