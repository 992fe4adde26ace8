"""The evaluation of BaTS (Oprescu, Kielmann): the tail phase of bags on sites that charge by the hour."""
