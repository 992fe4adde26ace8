"""The tables and figures of the papers, measured with the code that users run. Imported by no other room."""
