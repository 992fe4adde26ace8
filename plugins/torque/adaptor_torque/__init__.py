"""Torque as a dialect of PBS; `dialect.Torque` implements `backends.pbs.dialect.PbsDialect`."""
