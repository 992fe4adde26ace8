"""The forecasts of all bags, in the steps of the sites: what they are made from, and which are due. Pure."""
