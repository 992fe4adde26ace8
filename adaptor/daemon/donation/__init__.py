"""Lending idle nodes and taking them back: the clock, the questions and the acts around the decision."""
