"""The evaluation of Ricciardi & Hwang 2011, §4, with their allocation and ours."""
