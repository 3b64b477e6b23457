"""Tables of users and files of item factors in; out: tables of ranks and their estimates, computed elsewhere."""
