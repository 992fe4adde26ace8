"""The spool: daemon and workers exchange their messages as files in a folder that both see."""
